//! linuxptp: configuration and arguments of its programs.
//!
//! Written for linuxptp 3.1 and 4.x: both know the option `slaveOnly`. The sequence is that of the MAPS paper (2015,
//! "Time-synchronization"): the interface's clock is set, ptp4l and phc2sys are started, and the run waits until they
//! are stable.

use super::ClockError;
use crate::proto;

/// Name of the package in the distributions.
pub const PACKAGE: &str = "linuxptp";
/// log2 of the interval in s between two offsets printed by a free-running ptp4l; it accepts nothing shorter.
const FREE_RUNNING_ESTIMATE: i32 = 0;
/// log2 of the announce interval in s: four messages a second shorten the start; later they do not matter.
const LOG_ANNOUNCE: i32 = -2;
/// Priority of the server: it has to win against all clocks with default priorities.
const SERVER_PRIORITY: u8 = 100;
const CLIENT_PRIORITY: u8 = 255;
/// Greatest domain number (IEEE 1588-2019, table 2).
const LAST_DOMAIN: u32 = 127;
const MOST_THOUSANDTHS: u32 = 10_000;
/// Range of the log2 of the sync interval, as in the test language.
const LOG_SYNC: std::ops::RangeInclusive<i32> = -7..=4;

/// Settings of one end system's programs; every value is in its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of the interface under test.
    pub interface: String,
    /// Whether clocks are set.
    pub steer: bool,
    /// Whether timestamps are taken by the interface's clock.
    pub hardware: bool,
    /// Whether it is the time server.
    pub server: bool,
    domain: u32,
    transport: proto::PtpTransport,
    delay: proto::PtpDelay,
    log_sync_interval: i32,
    kp_thousandths: u32,
    ki_thousandths: u32,
}

impl Settings {
    /// Checks that every requested value is in its range.
    ///
    /// # Errors
    /// The first value out of range, with the range.
    pub fn of(asked: proto::StartClockProgramsRequest) -> Result<Self, ClockError> {
        let transport = proto::PtpTransport::try_from(asked.transport);
        let delay = proto::PtpDelay::try_from(asked.delay);
        let wrong = |what: &str| ClockError::Asked(what.into());
        if asked.domain > LAST_DOMAIN {
            return Err(wrong(&format!("domain is {}; it must be from 0 to {LAST_DOMAIN}", asked.domain)));
        }
        if !LOG_SYNC.contains(&asked.log_sync_interval) {
            let seen = asked.log_sync_interval;
            return Err(wrong(&format!("log_sync_interval is {seen}; it must be from -7 to 4")));
        }
        if asked.kp_thousandths.max(asked.ki_thousandths) > MOST_THOUSANDTHS {
            return Err(wrong("a constant of the servo is beyond 10"));
        }
        Ok(Self {
            interface: asked.interface,
            steer: asked.steer,
            hardware: asked.hardware,
            server: asked.server,
            domain: asked.domain,
            transport: transport.map_err(|_| wrong("there is no such transport of PTP"))?,
            delay: delay.map_err(|_| wrong("there is no such delay mechanism of PTP"))?,
            log_sync_interval: asked.log_sync_interval,
            kp_thousandths: asked.kp_thousandths,
            ki_thousandths: asked.ki_thousandths,
        })
    }

    /// Whether phc2sys runs beside ptp4l: the interface has a clock, and the system clock has to follow it.
    pub fn has_phc2sys(&self) -> bool {
        self.hardware && self.steer
    }

    /// Configuration of ptp4l, with `socket` for pmc.
    pub fn ptp4l(&self, socket: &str) -> String {
        let sync = self.log_sync_interval.to_string();
        let priority = if self.server { SERVER_PRIORITY } else { CLIENT_PRIORITY };
        let mut options: Vec<(&str, String)> = vec![
            ("time_stamping", if self.hardware { "hardware" } else { "software" }.into()),
            ("domainNumber", self.domain.to_string()),
            ("priority1", priority.to_string()),
            ("slaveOnly", u8::from(!self.server).to_string()),
            ("free_running", u8::from(!self.steer).to_string()),
            ("freq_est_interval", FREE_RUNNING_ESTIMATE.to_string()),
            (
                "network_transport",
                match self.transport {
                    proto::PtpTransport::L2 => "L2".into(),
                    proto::PtpTransport::Udp => "UDPv4".into(),
                },
            ),
            (
                "delay_mechanism",
                match self.delay {
                    proto::PtpDelay::E2e => "E2E".into(),
                    proto::PtpDelay::P2p => "P2P".into(),
                },
            ),
            ("logSyncInterval", sync.clone()),
            ("logMinDelayReqInterval", sync.clone()),
            ("logMinPdelayReqInterval", sync.clone()),
            ("logAnnounceInterval", LOG_ANNOUNCE.to_string()),
            ("summary_interval", sync),
            ("uds_address", socket.into()),
        ];
        if !self.hardware {
            // Without a clock in the interface ptp4l's own servo sets the system clock.
            options.push(("pi_proportional_const", thousandths(self.kp_thousandths)));
            options.push(("pi_integral_const", thousandths(self.ki_thousandths)));
        }
        let lines = options.iter().map(|(name, value)| format!("{name} {value}\n"));
        format!("[global]\n{}[{}]\n", lines.collect::<String>(), self.interface)
    }

    /// Arguments of phc2sys, which synchronises the interface's clock to the system clock on the server, and the system
    /// clock to the interface's elsewhere.
    ///
    /// Both show UTC: an offset of 0 is stated, because phc2sys would otherwise wait for ptp4l to supply one.
    pub fn phc2sys(&self) -> Vec<String> {
        let (source, sink) = if self.server {
            ("CLOCK_REALTIME", self.interface.as_str())
        } else {
            (self.interface.as_str(), "CLOCK_REALTIME")
        };
        let (kp, ki) = (thousandths(self.kp_thousandths), thousandths(self.ki_thousandths));
        // Once a second, with the fastest of five readings, as in the MAPS paper.
        let all =
            ["-m", "-q", "-s", source, "-c", sink, "-O", "0", "-R", "1", "-N", "5", "-P", &kp, "-I", &ki];
        all.map(str::to_owned).to_vec()
    }

    /// Arguments of phc_ctl, which sets the interface's clock from the system clock, once.
    pub fn phc_ctl(&self) -> Vec<String> {
        ["-q", &self.interface, "set"].map(str::to_owned).to_vec()
    }

    /// Arguments of pmc, which queries the ptp4l at `socket` and listens at `own`.
    pub fn pmc(&self, socket: &str, own: &str) -> Vec<String> {
        let domain = self.domain.to_string();
        let sets = ["CURRENT", "PARENT", "TIME_PROPERTIES", "PORT"].map(|set| format!("GET {set}_DATA_SET"));
        let all = ["-u", "-b", "0", "-d", &domain, "-i", own, "-s", socket];
        all.into_iter().map(str::to_owned).chain(sets).collect()
    }
}

/// Arguments of ptp4l: in the foreground, with all output on standard output, and configuration from standard input.
pub fn ptp4l() -> Vec<String> {
    ["-m", "-q", "-f", "/dev/stdin"].map(str::to_owned).to_vec()
}

fn thousandths(value: u32) -> String {
    format!("{}.{:03}", value / 1000, value % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> proto::StartClockProgramsRequest {
        proto::StartClockProgramsRequest {
            interface: "eth7".into(),
            kp_thousandths: 350,
            ki_thousandths: 150,
            ..Default::default()
        }
    }

    fn settings(change: impl FnOnce(&mut proto::StartClockProgramsRequest)) -> Settings {
        let mut request = asked();
        change(&mut request);
        Settings::of(request).expect("it is in order")
    }

    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|one| one == line)
    }

    #[test]
    fn a_configuration_says_who_serves_and_whether_clocks_are_set() {
        let server = settings(|one| one.server = true).ptp4l("s");
        let client = settings(|one| {
            one.log_sync_interval = -3;
            one.domain = 20;
            one.transport = proto::PtpTransport::Udp.into();
            one.delay = proto::PtpDelay::P2p.into();
        })
        .ptp4l("s");
        for line in ["[global]", "priority1 100", "slaveOnly 0", "free_running 1", "domainNumber 0", "[eth7]"]
        {
            assert!(has(&server, line), "{line} is missing in {server}");
        }
        for line in ["priority1 255", "slaveOnly 1", "logSyncInterval -3", "logMinDelayReqInterval -3"] {
            assert!(has(&client, line), "{line} is missing in {client}");
        }
        for line in ["domainNumber 20", "network_transport UDPv4", "delay_mechanism P2P", "uds_address s"] {
            assert!(has(&client, line), "{line} is missing in {client}");
        }
        // If ptp4l sets the system clock itself, the constants are its own.
        assert!(has(&client, "pi_proportional_const 0.350") && has(&client, "pi_integral_const 0.150"));
        let hardware = settings(|one| (one.hardware, one.steer) = (true, true));
        assert!(hardware.has_phc2sys() && !settings(|one| one.hardware = true).has_phc2sys());
        let text = hardware.ptp4l("s");
        assert!(has(&text, "time_stamping hardware") && has(&text, "free_running 0"));
        assert!(!text.contains("pi_proportional_const"));
    }

    #[test]
    fn time_flows_from_the_system_of_the_server_to_the_systems_of_the_others() {
        let server = settings(|one| one.server = true).phc2sys().join(" ");
        let client = settings(|one| one.kp_thousandths = 700).phc2sys().join(" ");
        assert!(server.contains("-s CLOCK_REALTIME -c eth7 -O 0"), "{server}");
        assert!(server.ends_with("-P 0.350 -I 0.150"), "{server}");
        assert!(client.contains("-s eth7 -c CLOCK_REALTIME -O 0"), "{client}");
        assert!(client.ends_with("-P 0.700 -I 0.150"), "{client}");
    }

    #[test]
    fn what_is_out_of_its_range_is_refused() {
        type Change = fn(&mut proto::StartClockProgramsRequest);
        let all: [(Change, &str); 6] = [
            (|one| one.domain = 128, "domain is 128"),
            (|one| one.log_sync_interval = 5, "log_sync_interval is 5"),
            (|one| one.log_sync_interval = -8, "log_sync_interval is -8"),
            (|one| one.ki_thousandths = 10_001, "beyond 10"),
            (|one| one.transport = 9, "no such transport"),
            (|one| one.delay = 9, "no such delay"),
        ];
        for (change, why) in all {
            let mut request = asked();
            change(&mut request);
            let refused = Settings::of(request).expect_err(why).to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
