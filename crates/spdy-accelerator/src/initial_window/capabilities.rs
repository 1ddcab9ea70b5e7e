//! Whether this process may attach BPF programs to a control group.

use anyhow::{Context, bail};

/// Bits of the capabilities (`linux/capability.h`).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_BPF: u64 = 1 << 39;

/// Checks the capabilities of this process, and, unless `is_requested`, that no filter of system calls (seccomp) is active.
///
/// # Errors
///
/// It lacks some, there is a filter, or `/proc` cannot be read.
pub(super) fn check(is_requested: bool) -> anyhow::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let effective = effective(&status).context("/proc/self/status has no CapEff")?;
    if !may_attach(effective) {
        bail!("the process lacks the capabilities CAP_BPF and CAP_NET_ADMIN");
    }
    if !is_requested && has_filter(&status) {
        bail!(
            "a filter of system calls is active: allow `bpf` and set `remember_windows = true` of `[listen]`"
        );
    }
    Ok(())
}

/// True if a filter of system calls is active (mode 2 of seccomp).
fn has_filter(status: &str) -> bool {
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

fn may_attach(effective: u64) -> bool {
    let has = |capability| effective & capability != 0;
    has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_NET_ADMIN))
}

fn effective(status: &str) -> Option<u64> {
    let digits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_of_system_calls_is_found() {
        assert!(has_filter(
            "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
        ));
        assert!(!has_filter(
            "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
        ));
    }

    #[test]
    fn root_and_a_service_with_both_capabilities_may_attach() {
        let status = "Name:\tspdy\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n";
        assert!(may_attach(effective(status).unwrap()));
        assert!(may_attach(CAP_BPF | CAP_NET_ADMIN));
        for lacking in [0, CAP_BPF, CAP_NET_ADMIN, 1 << 10] {
            assert!(!may_attach(lacking));
        }
        assert_eq!(effective("Name:\tspdy\n"), None);
    }
}
