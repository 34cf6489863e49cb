//! Parsers of kernel texts: options, interrupts, version.

/// Kernel options needed for measurements with time-aware queues, clocks and sockets.
const OPTIONS: [&str; 14] = [
    "CONFIG_HIGH_RES_TIMERS",
    "CONFIG_NETWORK_PHY_TIMESTAMPING",
    "CONFIG_NET_SCH_CBS",
    "CONFIG_NET_SCH_ETF",
    "CONFIG_NET_SCH_FQ",
    "CONFIG_NET_SCH_MQPRIO",
    "CONFIG_NET_SCH_NETEM",
    "CONFIG_NET_SCH_TAPRIO",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PTP_1588_CLOCK",
    "CONFIG_VETH",
    "CONFIG_VLAN_8021Q",
    "CONFIG_XDP_SOCKETS",
];

/// `NAME=y`, `NAME=m` or `NAME=n` for each of [`OPTIONS`], from a kernel configuration.
pub(super) fn options(configuration: &str) -> Vec<String> {
    let set = |name: &str| {
        let value = configuration.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        format!("{name}={}", value.unwrap_or("n").trim())
    };
    OPTIONS.iter().map(|name| set(name)).collect()
}

/// Preemption model from `/proc/sys/kernel/version`: `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT` or `none`.
pub(super) fn preemption(version: &str) -> String {
    let word = version.split_ascii_whitespace().find(|word| word.starts_with("PREEMPT"));
    word.unwrap_or("none").to_owned()
}

/// Interrupt numbers that `/proc/interrupts` lists for an interface: `eth0`, `eth0-rx-1`, `mlx5@eth0`.
pub(super) fn interrupts_of(text: &str, interface: &str) -> Vec<u32> {
    let belongs = |word: &str| {
        let start = word.rfind('@').map_or(word, |at| &word[at + 1..]);
        let rest = start.strip_prefix(interface);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '.', ',', '_']))
    };
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let number = number.trim().parse().ok()?;
            rest.split_ascii_whitespace().any(belongs).then_some(number)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_are_read_by_their_whole_names() {
        let text = "# CONFIG_PREEMPT_RT is not set\nCONFIG_NET_SCH_ETF=m\nCONFIG_NET_SCH_ETF_OTHER=y\nCONFIG_VETH=y\n";
        let found = options(text);
        assert_eq!(found.len(), OPTIONS.len());
        for expected in
            ["CONFIG_PREEMPT_RT=n", "CONFIG_NET_SCH_ETF=m", "CONFIG_VETH=y", "CONFIG_NO_HZ_FULL=n"]
        {
            assert!(found.iter().any(|one| one == expected), "{expected}: {found:?}");
        }
    }

    #[test]
    fn preemption_is_a_word_of_the_version() {
        assert_eq!(preemption("#1 SMP PREEMPT_RT Debian 6.1.76-1"), "PREEMPT_RT");
        assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC @0"), "PREEMPT_DYNAMIC");
        assert_eq!(preemption("#1 SMP Debian"), "none");
    }

    #[test]
    fn interrupts_belong_to_the_interface_of_the_whole_name() {
        let text = "           CPU0       CPU1\n 24:  1  0  PCI-MSIX-0000:00:01.0   0-edge      eth1\n \
            25:  1  0  PCI-MSIX  1-edge  eth1-rx-0\n 26:  1 0 PCI-MSIX 2-edge eth10-tx-0\n \
            27: 1 0 PCI-MSIX 3-edge mlx5_comp0@eth1\n ERR: 3\n";
        assert_eq!(interrupts_of(text, "eth1"), [24, 25, 27]);
        assert_eq!(interrupts_of(text, "eth10"), [26]);
        assert_eq!(interrupts_of(text, "eth"), Vec::<u32>::new());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,200}", interface in "[a-z]{1,4}[0-9]?") {
            prop_assert_eq!(options(&text).len(), OPTIONS.len());
            prop_assert!(!preemption(&text).is_empty());
            prop_assert!(interrupts_of(&text, &interface).len() <= text.lines().count());
        }

        #[test]
        fn an_interrupt_of_the_name_is_found(number in 0_u32..10_000, queue in 0_u8..64) {
            let line = format!(" {number}:  5  6  PCI-MSI {queue}-edge  enp3s0-TxRx-{queue}\n");
            prop_assert_eq!(interrupts_of(&line, "enp3s0"), [number]);
            prop_assert!(interrupts_of(&line, "enp3s").is_empty());
        }
    }
}
