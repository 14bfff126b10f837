//! What the process that starts PEs must know of this machine: its GPUs, the driver, the library. This creates no CUDA
//! context, because the GPUs belong to the PEs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

use onesided_nvshmem::{Driver, HostLibrary, Problem};
use serde_json::{Value, json};

use crate::launch::KERNELS_EARLY;

/// A machine on which PEs can be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The GPUs' names, by CUDA's numbers.
    pub gpus: Vec<String>,
    /// Their architectures, in the same order: 90 for `sm_90`.
    pub architectures: Vec<u32>,
    /// The newest CUDA that the driver supports, as `13.0`.
    pub cuda: String,
    /// The driver's version, if the system tells it.
    pub driver: Option<String>,
    /// The settings of the library and of UCX (`NVSHMEM_…`, `UCX_…`) in the environment, and when CUDA loads kernels in PEs.
    pub settings: BTreeMap<String, String>,
}

impl Machine {
    /// Looks for GPUs and the library.
    ///
    /// # Errors
    /// What is missing, and what would help.
    pub fn look() -> Result<Machine, String> {
        let module = onesided_nvshmem::kernel_module();
        match (onesided_nvshmem::driver(), onesided_nvshmem::host_library(None)) {
            (Ok(driver), Ok(_)) if !driver.gpus.is_empty() => Ok(Machine {
                gpus: driver.gpus,
                architectures: driver.architectures,
                cuda: format!("{}.{}", driver.cuda.0, driver.cuda.1),
                driver: module,
                settings: settings(std::env::vars_os()),
            }),
            (driver, library) => Err(refusal(&driver, module.as_deref(), &library)),
        }
    }

    /// The GPUs in a few words: `2 x NVIDIA H200`.
    pub fn gpus_in_words(&self, which: &[u32]) -> String {
        let names: Vec<&str> =
            which.iter().filter_map(|&gpu| self.gpus.get(gpu as usize)).map(String::as_str).collect();
        match names.as_slice() {
            [] => "no known GPU".to_string(),
            [one] => (*one).to_string(),
            [first, rest @ ..] if rest.iter().all(|name| name == first) => format!("{} x {first}", names.len()),
            several => several.join(", "),
        }
    }

    /// Adds what PEs are given beside the environment of this process.
    pub fn add_settings(&mut self, environment: &[(String, OsString)]) {
        self.settings.extend(settings_in(environment));
    }

    /// Its fields in reports.
    pub fn to_json(&self, which: &[u32]) -> Value {
        let gpus: Vec<&String> = which.iter().filter_map(|&gpu| self.gpus.get(gpu as usize)).collect();
        json!({ "gpus": gpus, "cuda": self.cuda, "driver": self.driver, "settings": self.settings })
    }
}

/// The settings that results can depend on, as PEs see them that are started from this environment.
pub fn settings(environment: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let (loading, early) = KERNELS_EARLY;
    let mut settings: BTreeMap<_, _> = environment
        .map(|(name, value)| (text(name), text(value)))
        .filter(|(name, _)| is_setting(name) || name == loading)
        .collect();
    settings.entry(loading.to_string()).or_insert(early.to_string());
    settings
}

/// The settings that results can depend on, of those that PEs are given.
pub fn settings_in(environment: &[(String, OsString)]) -> impl Iterator<Item = (String, String)> {
    let settings = environment.iter().filter(|(name, _)| is_setting(name));
    settings.map(|(name, value)| (name.clone(), value.to_string_lossy().into_owned()))
}

/// Whether results can depend on it. The folder of UCX's modules only says where UCX is.
fn is_setting(name: &str) -> bool {
    name.starts_with("NVSHMEM_") || (name.starts_with("UCX_") && name != "UCX_MODULE_DIR")
}

/// Why the backend cannot be used here, and what would help.
fn refusal(driver: &Result<Driver, Problem>, module: Option<&str>, library: &Result<HostLibrary, Problem>) -> String {
    let mut text = "the backend nvshmem needs a GPU with its driver, and libnvshmem_host:\n".to_string();
    // Writing to a String cannot fail.
    let _ = match driver {
        Err(problem) => {
            let module = module.map_or("no kernel module".to_string(), |version| format!("kernel module {version}"));
            let remedy = Driver::remedy(problem);
            writeln!(text, "  NVIDIA driver: {problem} ({module})\n    remedy: {remedy}")
        }
        Ok(driver) if driver.gpus.is_empty() => {
            writeln!(text, "  the driver shows no GPU: see what nvidia-smi says, and CUDA_VISIBLE_DEVICES")
        }
        Ok(_) => Ok(()),
    };
    if let Err(problem) = library {
        let _ = writeln!(text, "  NVSHMEM: {problem}\n    remedy: {}", HostLibrary::remedy(problem));
    }
    text + "`onesided doctor` looks closer; without --backend the simulator runs it, which needs neither."
}

/// Which GPUs to use: `2` is the first two, `0,3` is GPUs 0 and 3, `None` is all.
///
/// # Errors
/// A sentence, if this machine has no such GPUs.
pub fn choose(asked: Option<&str>, there: usize) -> Result<Vec<u32>, String> {
    let here = format!("there {} here", if there == 1 { "is 1".into() } else { format!("are {there}") });
    let Some(asked) = asked else {
        return Ok((0..there as u32).collect());
    };
    let wrong = || format!("--gpus {asked}: expected a number of GPUs, or their numbers as 0,1");
    let numbers: Vec<u32> =
        asked.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    match numbers.as_slice() {
        [0] => Err("--gpus 0: at least one GPU is needed".to_string()),
        [count] if *count as usize <= there => Ok((0..*count).collect()),
        [count] => Err(format!("--gpus {count}: {here}")),
        several => match several.iter().enumerate().find(|(i, gpu)| several[..*i].contains(gpu)) {
            Some((_, twice)) => Err(format!("--gpus {asked}: GPU {twice} stands there twice")),
            None => match several.iter().find(|gpu| **gpu as usize >= there) {
                Some(absent) => Err(format!("--gpus {asked}: no GPU {absent}, {here}, numbered from 0")),
                None => Ok(numbers),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_chosen_by_number_or_by_name() {
        assert_eq!(choose(None, 2).unwrap(), [0, 1]);
        assert_eq!(choose(Some("1"), 2).unwrap(), [0]);
        assert_eq!(choose(Some("1,0"), 2).unwrap(), [1, 0]);
        for (asked, there, why) in [
            ("0", 2, "at least one"),
            ("3", 2, "there are 2 here"),
            ("0,1", 1, "no GPU 1, there is 1 here"),
            ("1,1", 2, "twice"),
            ("a", 2, "expected a number"),
            ("", 2, "expected a number"),
        ] {
            let error = choose(Some(asked), there).unwrap_err();
            assert!(error.contains(why), "{asked}: {error}");
        }
    }

    #[test]
    fn reports_have_the_settings_of_the_library() {
        for (set, loading) in [("HOME", "EAGER"), ("CUDA_MODULE_LOADING", "LAZY")] {
            let environment = [("NVSHMEM_DISABLE_NVLS", "1"), ("ONESIDED_NVSHMEM_LIB", "/lib"), (set, "LAZY")];
            let settings = settings(environment.into_iter().map(|(name, value)| (name.into(), value.into())));
            let json = Machine { settings, ..Machine::default() }.to_json(&[]);
            assert_eq!(json["settings"], json!({ "CUDA_MODULE_LOADING": loading, "NVSHMEM_DISABLE_NVLS": "1" }));
        }
        let given = ["UCX_TLS", "UCX_MODULE_DIR", "LD_LIBRARY_PATH"].map(|name| (name.to_string(), "tcp".into()));
        let mut machine = Machine::default();
        machine.add_settings(&given);
        assert_eq!(machine.settings, BTreeMap::from([("UCX_TLS".to_string(), "tcp".to_string())]));
    }

    #[test]
    fn all_that_is_missing_is_told_with_what_would_help() {
        let driver = Problem::Refused { file: "libcuda.so.1".into(), why: "libcuda.so.1: no such file".into() };
        let library = Problem::Absent { file: "/lib/x.so".into(), named_by: "ONESIDED_NVSHMEM_LIB" };
        let expected = "\
the backend nvshmem needs a GPU with its driver, and libnvshmem_host:
  NVIDIA driver: libcuda.so.1: no such file (no kernel module)
    remedy: install NVIDIA's driver; a container must be started with access to the GPUs
  NVSHMEM: ONESIDED_NVSHMEM_LIB names /lib/x.so: no such file
    remedy: name the file libnvshmem_host.so.3, or the folder that holds it
`onesided doctor` looks closer; without --backend the simulator runs it, which needs neither.";
        assert_eq!(refusal(&Err(driver), None, &Err(library.clone())), expected);
        let driver = Driver { cuda: (13, 0), gpus: vec![], architectures: vec![], file: "/lib/cuda".into() };
        let said = refusal(&Ok(driver.clone()), Some("580.1"), &Err(library.clone()));
        assert!(said.contains("\n  the driver shows no GPU: ") && said.contains("\n  NVSHMEM: "), "{said}");
        let gpus = vec!["A".to_string()];
        assert!(!refusal(&Ok(Driver { gpus, ..driver }), None, &Err(library)).contains("GPU:"));
    }

    #[test]
    fn equal_gpus_are_counted() {
        let gpus = ["A", "A", "B"].map(String::from).to_vec();
        let machine = Machine { gpus, ..Machine::default() };
        assert_eq!(machine.gpus_in_words(&[0]), "A");
        assert_eq!(machine.gpus_in_words(&[0, 1]), "2 x A");
        assert_eq!(machine.gpus_in_words(&[1, 2]), "A, B");
    }
}
