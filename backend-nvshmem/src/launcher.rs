use crate::problem::Problem;
pub struct Placement {
    pub rank: usize,
    pub n_pes: usize,
    pub local_rank: usize,
    pub meeting: Option<String>,
}
pub fn placement() -> Result<Option<Placement>, Problem> {
    let n = |v: &str| std::env::var(v).ok().and_then(|t| t.parse::<usize>().ok());
    let Some(rank) = n("ONESIDED_RANK") else { return Ok(None) };
    Ok(Some(Placement {
        rank,
        n_pes: n("ONESIDED_PES").unwrap_or(1),
        local_rank: n("ONESIDED_LOCAL_RANK").unwrap_or(rank),
        meeting: std::env::var("ONESIDED_RENDEZVOUS").ok(),
    }))
}
