//! Environments as the launchers make them, and broken ones.

use super::*;

fn place(environment: &[(&str, &str)]) -> Result<Option<Placement>, Problem> {
    placement_in(&|name| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
}

fn placed(environment: &[(&str, &str)]) -> Placement {
    place(environment).unwrap().unwrap()
}

/// What is wrong, as a user reads it.
fn refused(environment: &[(&str, &str)]) -> String {
    place(environment).unwrap_err().to_string()
}

/// Open MPI 4.1.4 on one host: what `mpirun -n 4 env` shows.
const OPEN_MPI: [(&str, &str); 7] = [
    ("OMPI_COMM_WORLD_RANK", "2"),
    ("OMPI_COMM_WORLD_SIZE", "4"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "2"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
    ("PMIX_NAMESPACE", "1214316545"),
    ("OMPI_MCA_ess_base_jobid", "1214316545"),
    ("OMPI_MCA_orte_precondition_transports", "234e8008136622ea-96fd945f23984785"),
];

const SLURM: [(&str, &str); 8] = [
    ("SLURM_PROCID", "5"),
    ("SLURM_NTASKS", "7"),
    ("SLURM_LOCALID", "1"),
    ("SLURM_NODEID", "1"),
    ("SLURM_STEP_TASKS_PER_NODE", "4,3"),
    ("SLURM_STEP_NODELIST", "gpu[07-08]"),
    ("SLURM_JOB_ID", "4711"),
    ("SLURM_STEP_ID", "0"),
];

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    more.iter().chain(base).copied().collect() // the first of a name is found
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(place(&[]), Ok(None));
    assert_eq!(place(&[("RANK", "gold"), ("ONESIDED_RANK", ""), (RENDEZVOUS, "host:1")]), Ok(None));
}

#[test]
fn our_own_launcher_comes_first() {
    let ours = [("ONESIDED_RANK", "1"), ("ONESIDED_PES", "3"), (RENDEZVOUS, "127.0.0.1:20000/7.1")];
    let expected = Placement {
        rank: 1,
        n_pes: 3,
        local_rank: 1,
        local_size: Some(3),
        meeting: Some("127.0.0.1:20000/7.1".to_string()),
        key: None,
        from: Launcher::Onesided,
    };
    assert_eq!(placed(&with(&OPEN_MPI, &ours)), expected);

    let far = placed(&with(&ours, &[("ONESIDED_LOCAL_RANK", "0"), (RENDEZVOUS, "head:20000")]));
    assert_eq!((far.local_rank, far.local_size, far.meeting().unwrap()), (0, None, "head:20000"));
}

#[test]
fn open_mpi_on_one_host_needs_no_address() {
    let one = placed(&OPEN_MPI);
    assert_eq!((one.rank, one.n_pes, one.local_rank, one.local_size), (2, 4, 2, Some(4)));
    let meeting = one.meeting().unwrap();
    // The name is shown, so the key is no part of it.
    assert!(meeting.starts_with("127.0.0.1:") && meeting.ends_with("/1214316545.1214316545"), "{meeting}");
    // Every PE finds the same, and those of another job something else.
    assert_eq!(placed(&with(&OPEN_MPI, &[("OMPI_COMM_WORLD_RANK", "0")])).meeting, one.meeting);
    assert_ne!(placed(&with(&OPEN_MPI, &[("PMIX_NAMESPACE", "1214316546")])).meeting, one.meeting);
    // On several hosts the user has to say it.
    let far = placed(&with(&OPEN_MPI, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "3")]));
    let why = far.meeting().unwrap_err().to_string();
    assert!(why.starts_with("ONESIDED_RENDEZVOUS: not set") && why.contains("Open MPI's mpirun"), "{why}");
    let told = placed(&with(&OPEN_MPI, &[("OMPI_COMM_WORLD_LOCAL_SIZE", "3"), (RENDEZVOUS, "gpu07:5000")]));
    assert_eq!(told.meeting().unwrap(), "gpu07:5000");
}

#[test]
fn the_users_key_comes_first_and_open_mpi_makes_one() {
    let text = "a text that nobody guesses";
    let users = Key::from_user(text.to_string()).unwrap();
    for launcher in [&[("ONESIDED_RANK", "1"), ("ONESIDED_PES", "3")][..], &OPEN_MPI, &SLURM] {
        assert_eq!(placed(&with(launcher, &[(Key::VARIABLE, text)])).key().unwrap(), &users);
    }
    assert_eq!(placed(&OPEN_MPI).key().unwrap().reveal(), "234e8008136622ea-96fd945f23984785");
    let derived = [("OMPI_MCA_orte_precondition_transports", "017569a900000000-017569a900000000")];
    for (launcher, name) in [(&with(&OPEN_MPI, &derived)[..], "Open MPI's mpirun"), (&SLURM, "Slurm's srun")] {
        let why = placed(launcher).key().unwrap_err().to_string();
        assert!(why.starts_with(&format!("ONESIDED_KEY: not set, and {name} passes no secret by which")), "{why}");
    }
    let short = refused(&with(&SLURM, &[(Key::VARIABLE, "hunter2")]));
    assert!(short.starts_with("ONESIDED_KEY: it has 7 characters") && !short.contains("hunter2"), "{short}");
    let whole = format!("{:?}", placed(&with(&SLURM, &[(Key::VARIABLE, text)])));
    assert!(whole.contains("Key(…)") && !whole.contains("nobody"), "{whole}");
}

#[test]
fn slurm_meets_on_its_first_node() {
    let one = placed(&SLURM);
    assert_eq!((one.rank, one.n_pes, one.local_rank, one.local_size), (5, 7, 1, Some(3)));
    assert_eq!((one.from, one.meeting().unwrap()), (Launcher::Slurm, &*format!("gpu07:{}/4711.0", port("4711.0"))));

    let here = placed(&with(&SLURM, &[("SLURM_STEP_TASKS_PER_NODE", "7"), ("SLURM_NODEID", "0")]));
    assert!(here.meeting().unwrap().starts_with("127.0.0.1:"), "{here:?}");
    // The batch script and an interactive shell have a rank, but are no PEs.
    assert_eq!(place(&SLURM[..7]), Ok(None));
    assert_eq!(place(&with(&SLURM, &[("SLURM_STEP_ID", "4294967290")])), Ok(None));
}

#[test]
fn pmi_is_enough_and_slurm_says_more() {
    let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "2")];
    let one = placed(&pmi);
    assert_eq!((one.rank, one.n_pes, one.local_rank, one.local_size, one.from), (1, 2, 1, Some(2), Launcher::Pmi));
    assert!(one.meeting().unwrap_err().to_string().contains("set it, the same for all, to host:port"));
    assert!(placed(&with(&pmi, &[("PMI_PORT", "vm:4242")])).meeting().unwrap().ends_with("/vm:4242"));
    // mpiexec started by srun, once on each node; and srun that speaks PMI itself.
    assert_eq!(placed(&with(&SLURM, &pmi)).from, Launcher::Pmi);
    assert_eq!(placed(&with(&SLURM, &[("PMI_RANK", "5"), ("PMI_SIZE", "7")])), placed(&SLURM));
}

#[test]
fn torchrun_meets_beside_its_own_store() {
    let torchrun = [
        ("RANK", "3"),
        ("WORLD_SIZE", "4"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "head"),
        ("MASTER_PORT", "29500"),
    ];
    let one = placed(&torchrun);
    assert_eq!((one.rank, one.n_pes, one.local_rank, one.local_size, one.from), (3, 4, 1, Some(2), Launcher::Torchrun));
    assert_eq!(one.meeting().unwrap(), "head:29501/");
    let other =
        placed(&with(&torchrun, &[("MASTER_ADDR", "fd00::2"), ("MASTER_PORT", "65535"), ("TORCHELASTIC_RUN_ID", "x")]));
    assert_eq!(other.meeting().unwrap(), "[fd00::2]:65534/x");
    assert_eq!(place(&torchrun[..4]), Ok(None)); // the words alone may be anyone's
}

#[test]
fn without_a_rank_on_the_host_the_rank_among_all_chooses_the_gpu() {
    let slurm: Vec<_> = SLURM.into_iter().filter(|(name, _)| *name != "SLURM_LOCALID").collect();
    for (environment, rank) in [
        (&[("ONESIDED_RANK", "3"), ("ONESIDED_PES", "4")][..], 3),
        (&[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")], 3),
        (&[("PMI_RANK", "3"), ("PMI_SIZE", "4")], 3),
        (&[("RANK", "3"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "head")], 3),
        (&slurm, 5),
    ] {
        assert_eq!(placed(environment).local_rank, rank, "{environment:?}");
    }
}

#[test]
fn contradictions_name_the_variable_and_its_value() {
    for (environment, said) in [
        (&[("ONESIDED_RANK", "1")][..], "ONESIDED_RANK=1: ONESIDED_PES is not set beside it"),
        (&[("ONESIDED_PES", "4")], "ONESIDED_PES=4: ONESIDED_RANK is not set beside it"),
        (
            &[("ONESIDED_RANK", "4"), ("ONESIDED_PES", "4")],
            "ONESIDED_RANK=4: PEs count from 0 to 3, because ONESIDED_PES=4",
        ),
        (&[("ONESIDED_RANK", "0"), ("ONESIDED_PES", "0")], "ONESIDED_PES=0: no PEs at all"),
        (
            &[("ONESIDED_RANK", "0"), ("ONESIDED_PES", "18446744073709551615")],
            "ONESIDED_PES=18446744073709551615: 1048576 PEs at most",
        ),
        (&[("ONESIDED_RANK", "one"), ("ONESIDED_PES", "2")], "ONESIDED_RANK=one: not a whole number from 0 on"),
        (&[("ONESIDED_RANK", "-1"), ("ONESIDED_PES", "2")], "ONESIDED_RANK=-1: not a whole number from 0 on"),
        (&[("OMPI_COMM_WORLD_RANK", "1")], "OMPI_COMM_WORLD_SIZE is not set"),
        (&[("PMI_SIZE", "2")], "PMI_RANK is not set"),
        (&[("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "0")], "SLURM_NTASKS is not set"),
        (&[("RANK", "1"), ("TORCHELASTIC_RUN_ID", "none")], "WORLD_SIZE is not set"),
    ] {
        let problem = refused(environment);
        assert!(problem.contains(said), "{environment:?}: {problem}");
    }
    let local = refused(&with(&OPEN_MPI, &[("OMPI_COMM_WORLD_LOCAL_RANK", "4")]));
    assert!(local.starts_with("OMPI_COMM_WORLD_LOCAL_RANK=4: no PE of OMPI_COMM_WORLD_LOCAL_SIZE=4"), "{local}");
}

#[test]
fn slurms_lists() {
    for (list, first) in [
        ("gpu07", "gpu07"),
        ("gpu[07-12]", "gpu07"),
        ("gpu[3,7-12],login", "gpu3"),
        ("rack[1-2]n[03-05].example.org", "rack1n03.example.org"),
        ("a-1,b-2", "a-1"),
    ] {
        assert_eq!(first_host(list), first, "{list}");
    }
    let tasks: Vec<_> = (0..4).map(|node| tasks_of_node("4(x2),3", node)).collect();
    assert_eq!(tasks, [Some(4), Some(4), Some(3), None]);
    assert_eq!(tasks_of_node("many", 0), None);
}

#[test]
fn ports_are_the_same_everywhere_and_among_those_that_nobody_is_given() {
    assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c); // the function's published value
    assert!((0..1000).all(|job| PORTS.contains(&port(&job.to_string()))));
}

#[test]
fn launchers_have_names_and_a_pe_alone_has_a_place() {
    assert_eq!(Launcher::OpenMpi.to_string(), "Open MPI's mpirun");
    let alone = Placement::alone();
    assert_eq!((alone.rank, alone.n_pes, alone.from.to_string().as_str()), (0, 1, "no launcher"));
}
