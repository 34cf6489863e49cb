//! `reflect` and `ask-reflector`: STAMP and TWAMP Light with devices of other makers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use ipnet::IpNet;
use wg_frame::stamp::Format;
use wg_net::{NetError, Socket, Wake, realtime};

use super::capture::wait_for_the_end;
use crate::console;
use crate::reflecting::allowed::Allowed;
use crate::reflecting::authentication::Authentication;
use crate::reflecting::reflector::{Account, Reflector, serve};
use crate::reflecting::sender::{Order, run};

/// How to reflect.
#[derive(clap::Args)]
pub(crate) struct ReflectOptions {
    /// Address and UDP port to answer at, for example [::]:862 for IPv6. On a host of several addresses, name the one
    /// that senders know: answers to 0.0.0.0 or [::] leave with the address of their route.
    #[arg(long, default_value = "0.0.0.0:862")]
    listen: SocketAddr,
    /// Network whose senders are answered, for example 10.20.0.0/16, 192.0.2.7/32 or 2001:db8::/32; may be repeated.
    /// Needed: nobody is answered unasked.
    #[arg(long, value_name = "NETWORK")]
    allow: Vec<IpNet>,
    /// Packets per second that each sender's address gets an answer to, or each network of 64 bits of IPv6.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Authenticated mode of STAMP: file with the key, 1 to 64 octets; a newline at its end is no part of it.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Answer with the sender's sequence numbers rather than numbers of each session: nobody can then tell in which
    /// direction a packet was lost.
    #[arg(long)]
    stateless: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FormatName {
    #[default]
    Ntp,
    Ptp,
}

/// What to ask.
#[derive(clap::Args)]
pub(crate) struct AskOptions {
    /// The reflector.
    #[arg(long)]
    to: SocketAddr,
    /// Number of packets. Default: on and on, until nobody reads.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Time from one packet to the next, in ns.
    #[arg(long, value_parser = clap::value_parser!(i64).range(10_000..=3_600_000_000_000))]
    period_ns: i64,
    /// UDP payload in bytes. Default: that of a packet without padding.
    #[arg(long, default_value_t = 0)]
    payload: usize,
    /// TWAMP Light: padding is zeros, and there is no session identifier.
    #[arg(long, conflicts_with_all = ["session", "key"])]
    twamp: bool,
    /// Session identifier (RFC 8972); 0: none.
    #[arg(long, default_value_t = 0)]
    session: u16,
    /// Format of timestamps.
    #[arg(long, value_enum, default_value_t)]
    format: FormatName,
    /// Authenticated mode: file with the key.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Differentiated services code point of the packets.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Priority of the socket (`SO_PRIORITY`), by which a VLAN interface chooses that of the tag. Default: that of the
    /// class.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: Option<u8>,
    /// How long answers are awaited after the last packet, in ns.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=60_000_000_000))]
    patience_ns: i64,
}

/// Answers until SIGINT or SIGTERM, then prints the account as JSON. Exit code 2: a bad option; 3: the host refuses.
pub(crate) fn reflect(options: &ReflectOptions) -> ExitCode {
    match reflected(options) {
        Ok(account) => {
            console::json(&described(&account).to_string());
            ExitCode::SUCCESS
        }
        Err((code, problem)) => fail(code, &problem),
    }
}

/// Sends the packets and prints what comes as lines of JSON, then the summary. Exit code 2: a bad option; 3: the host
/// refuses.
pub(crate) fn ask(options: &AskOptions) -> ExitCode {
    let authentication = match authentication(options.key.as_ref()) {
        Ok(authentication) => authentication,
        Err(problem) => return fail(2, &problem),
    };
    // Without them it is less exact, and kernel timestamps do not mind.
    let _ = realtime::die_with_parent();
    let _ = realtime::no_timer_slack();
    let order = Order {
        to: options.to,
        count: options.count,
        period_ns: options.period_ns,
        payload: options.payload,
        authentication,
        format: match options.format {
            FormatName::Ntp => Format::Ntp,
            FormatName::Ptp => Format::Ptp,
        },
        session: options.session,
        padding_is_tlv: !options.twamp,
        dscp: options.dscp,
        priority: options.priority,
        patience_ns: options.patience_ns,
    };
    match run(order, console::say) {
        Ok(summary) => {
            console::say(&summary);
            ExitCode::SUCCESS
        }
        Err(error) => fail(3, &error.to_string()),
    }
}

/// A reflector that would answer nobody.
const NOBODY: &str = "a reflector answers only senders of the networks that it is told of, and it was told of none: add \
                      --allow NETWORK, for example --allow 192.0.2.0/24";

fn fail(code: u8, problem: &str) -> ExitCode {
    console::complain(problem);
    ExitCode::from(code)
}

fn authentication(key: Option<&PathBuf>) -> Result<Authentication, String> {
    key.map_or(Ok(Authentication::NONE), |path| Authentication::from_file(path))
}

fn reflected(options: &ReflectOptions) -> Result<Account, (u8, String)> {
    if options.allow.is_empty() {
        return Err((2, NOBODY.to_owned()));
    }
    let authentication = authentication(options.key.as_ref()).map_err(|problem| (2, problem))?;
    let socket = Socket::udp(options.listen).map_err(|error| (3, refusal(options.listen, &error)))?;
    let host = |problem: String| (3, problem);
    let at = socket.local().map_err(|e| host(format!("cannot read the reflector's address: {e}")))?;
    let wake = Arc::new(Wake::new().map_err(|e| host(e.to_string()))?);
    let allowed = Allowed::new(options.allow.clone(), at.port(), options.rate);
    let mut reflector = Reflector::new(allowed, authentication, !options.stateless);
    let serving = {
        let wake = Arc::clone(&wake);
        std::thread::Builder::new()
            .name("reflector".into())
            .spawn(move || serve(socket, &mut reflector, &wake).map(|()| reflector.account().clone()))
    }
    .map_err(|e| host(format!("cannot start a thread: {e}")))?;
    wait_for_the_end(&format!("reflecting at {at}"))
        .map_err(|e| host(format!("cannot wait for signals: {e}")))?;
    wake.signal();
    let served = serving.join();
    served
        .map_err(|_| (70, "the reflector failed; this is a defect of wiregauge".to_owned()))?
        .map_err(|e| host(e.to_string()))
}

/// A refused socket as a sentence with the cure.
fn refusal(at: SocketAddr, error: &NetError) -> String {
    if error.io().kind() == std::io::ErrorKind::PermissionDenied {
        return format!(
            "port {} is privileged: run this as root or with CAP_NET_BIND_SERVICE, or name another port with --listen",
            at.port()
        );
    }
    error.to_string()
}

fn described(account: &Account) -> serde_json::Value {
    let refused: serde_json::Map<String, serde_json::Value> =
        account.refused.iter().map(|(refusal, count)| (refusal.name().into(), (*count).into())).collect();
    serde_json::json!({
        "schema": 1,
        "answered": account.answered,
        "sessions": account.sessions,
        "unsent": account.unsent,
        "refused": refused,
    })
}
