//! Connection strings: URLs as libpq reads them.
//!
//! Read here and not by the driver, which knows neither the modes that verify nor `sslrootcert`. No message
//! repeats any part of the string that may belong to a password.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::Config;
use postgres::config::{
    ChannelBinding, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs,
};

use crate::options::Options;
use crate::tls::{Mode, Roots, Terms};

/// Where Debian, Fedora and others put the server's socket.
const SOCKET_FOLDER: &str = "/var/run/postgresql";

const DEFAULT_PORT: u16 = 5432;

/// What a connection string says.
pub(crate) struct Dsn {
    /// For the driver, which hides the password when printed.
    pub(crate) config: Config,
    /// `host:port/dbname`, for messages.
    pub(crate) name: String,
    pub(crate) tls: Terms,
    pub(crate) schema: String,
    pub(crate) connect_timeout: Duration,
}

type Parsed<T> = Result<T, String>;

/// What was found, before anything follows from it.
#[derive(Default)]
struct Parts {
    hosts: Vec<String>,
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
    user: Option<String>,
    password: Option<String>,
    dbname: Option<String>,
    mode: Option<Mode>,
    roots: Option<Roots>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    schema: Option<String>,
    connect_timeout: Option<Duration>,
}

impl Dsn {
    /// Reads `postgresql://user:password@host:port/dbname?parameter=value&…`; every part but the scheme may
    /// be missing.
    pub(crate) fn parse(text: &str, options: &Options) -> Parsed<Self> {
        let rest = ["postgresql://", "postgres://"].iter().find_map(|s| text.strip_prefix(s));
        let Some(rest) = rest else {
            return Err("a connection string starts with postgresql://".to_owned());
        };
        let (mut parts, mut config) = (Parts::default(), Config::new());
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let hosts = match authority.rsplit_once('@') {
            Some((user, hosts)) => {
                parts.identify(user)?;
                hosts
            }
            // It may be a password's second half.
            None if rest.contains('@') => {
                return Err("in a user name or password, write / as %2F and ? as %3F".to_owned());
            }
            None => authority,
        };
        parts.locate(hosts)?;
        if !path.is_empty() {
            parts.dbname = Some(decoded(path)?);
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err("a parameter of the connection string has no value".to_owned());
            };
            let (name, value) = (decoded(name)?, decoded(value)?);
            parts.set(&mut config, &name, value)?;
        }
        parts.finish(config, options)
    }
}

impl Parts {
    fn identify(&mut self, text: &str) -> Parsed<()> {
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (text, None),
        };
        self.password = password;
        self.user = Some(decoded(user)?).filter(|user| !user.is_empty());
        Ok(())
    }

    fn locate(&mut self, text: &str) -> Parsed<()> {
        if text.is_empty() {
            return Ok(());
        }
        for place in text.split(',') {
            let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((host, rest)) => (host, rest.strip_prefix(':')),
                None => match place.rsplit_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (place, None),
                },
            };
            self.hosts.push(decoded(host)?);
            match port {
                Some(text) if !text.is_empty() => self.ports.push(port_number(text)?),
                Some(_) | None => self.ports.push(DEFAULT_PORT),
            }
        }
        Ok(())
    }

    fn set(&mut self, config: &mut Config, name: &str, value: String) -> Parsed<()> {
        let wrong = |expected: &str| {
            Err(format!("the connection string's {name} is {value:?}; give {expected}"))
        };
        let seconds = || match value.parse::<u64>() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => Err(format!("the connection string's {name} is no number of seconds")),
        };
        match name {
            "host" => self.hosts = value.split(',').map(str::to_owned).collect(),
            "hostaddr" => {
                let all: Result<_, _> = value.split(',').map(str::parse).collect();
                match all {
                    Ok(all) => self.addresses = all,
                    Err(_) => return wrong("an IP address"),
                }
            }
            "port" => self.ports = value.split(',').map(port_number).collect::<Parsed<_>>()?,
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "dbname" => self.dbname = Some(value),
            "schema" => self.schema = Some(value),
            "connect_timeout" => {
                self.connect_timeout = Some(seconds()?).filter(|limit| !limit.is_zero());
            }
            "sslmode" => match value.as_str() {
                "disable" => self.mode = Some(Mode::Disable),
                "prefer" => self.mode = Some(Mode::Prefer),
                "require" => self.mode = Some(Mode::Require),
                "verify-ca" => self.mode = Some(Mode::VerifyCa),
                "verify-full" => self.mode = Some(Mode::VerifyFull),
                _ => return wrong("disable, prefer, require, verify-ca or verify-full"),
            },
            "sslrootcert" => {
                self.roots = Some(match value.as_str() {
                    "system" => Roots::System,
                    file => Roots::File(PathBuf::from(file)),
                });
            }
            "sslcert" => self.certificate = Some(PathBuf::from(value)),
            "sslkey" => self.key = Some(PathBuf::from(value)),
            "sslnegotiation" if value == "postgres" => {}
            "sslnegotiation" => return wrong("postgres"),
            "gssencmode" if value == "disable" || value == "prefer" => {}
            "gssencmode" => return wrong("disable or prefer"),
            "application_name" | "fallback_application_name" => {
                config.application_name(&value);
            }
            "options" => {
                config.options(&value);
            }
            "keepalives" => {
                config.keepalives(value != "0");
            }
            "keepalives_idle" => {
                config.keepalives_idle(seconds()?);
            }
            "keepalives_interval" => {
                config.keepalives_interval(seconds()?);
            }
            "keepalives_count" => match value.parse() {
                Ok(count) => {
                    config.keepalives_retries(count);
                }
                Err(_) => return wrong("a number"),
            },
            "tcp_user_timeout" => match value.parse() {
                Ok(millis) => {
                    config.tcp_user_timeout(Duration::from_millis(millis));
                }
                Err(_) => return wrong("a number of milliseconds"),
            },
            "target_session_attrs" => {
                config.target_session_attrs(match value.as_str() {
                    "any" => TargetSessionAttrs::Any,
                    "read-write" | "primary" => TargetSessionAttrs::ReadWrite,
                    "read-only" | "standby" => TargetSessionAttrs::ReadOnly,
                    _ => return wrong("any, read-write or read-only"),
                });
            }
            "channel_binding" => {
                config.channel_binding(match value.as_str() {
                    "disable" => ChannelBinding::Disable,
                    "prefer" => ChannelBinding::Prefer,
                    "require" => ChannelBinding::Require,
                    _ => return wrong("disable, prefer or require"),
                });
            }
            "load_balance_hosts" => {
                config.load_balance_hosts(match value.as_str() {
                    "disable" => LoadBalanceHosts::Disable,
                    "random" => LoadBalanceHosts::Random,
                    _ => return wrong("disable or random"),
                });
            }
            _ => {
                let name: String = name.chars().take(40).collect();
                return Err(format!("the connection string has an unknown parameter {name:?}"));
            }
        }
        Ok(())
    }

    fn finish(self, mut config: Config, options: &Options) -> Parsed<Dsn> {
        let (hosts, ports) = self.places()?;
        let on_socket = hosts.iter().filter(|host| host.starts_with('/')).count();
        let tls = match on_socket {
            0 => self.terms()?,
            // As in libpq: nothing to protect on a socket of this machine.
            all if all == hosts.len() => Terms { mode: Mode::Disable, roots: None, identity: None },
            _ => return Err("give either sockets or hosts, not both".to_owned()),
        };
        for host in &hosts {
            config.host(host);
        }
        for address in &self.addresses {
            config.hostaddr(*address);
        }
        for port in &ports {
            config.port(*port);
        }
        if let Some(user) = &self.user {
            config.user(user);
        }
        if let Some(password) = &self.password {
            config.password(password);
        }
        if let Some(dbname) = &self.dbname {
            config.dbname(dbname);
        }
        if config.get_application_name().is_none() {
            config.application_name("chongming-task");
        }
        let connect_timeout = self.connect_timeout.unwrap_or(options.connect_timeout);
        config.connect_timeout(connect_timeout);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(options.statement_timeout + connect_timeout);
        }
        if on_socket == 0 {
            // See `tls`: the handshake is ours alone.
            config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        } else {
            config.ssl_mode(SslMode::Disable);
        }
        let schema = self.schema.unwrap_or_else(|| options.schema.clone());
        if schema.is_empty() || schema.len() > 63 || schema.contains('\0') {
            return Err(format!("{schema:?} is no name of a schema; give 1 to 63 bytes"));
        }
        let places: Vec<String> = hosts
            .iter()
            .enumerate()
            .map(|(i, host)| {
                let port = ports.get(i).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
                if host.contains(':') {
                    format!("[{host}]:{port}")
                } else {
                    format!("{host}:{port}")
                }
            })
            .collect();
        let dbname = self.dbname.or(self.user).unwrap_or_default();
        let name = format!("{}/{dbname}", places.join(","));
        Ok(Dsn { config, name, tls, schema, connect_timeout })
    }

    /// Hosts and ports, with what is usual where nothing was given.
    fn places(&self) -> Parsed<(Vec<String>, Vec<u16>)> {
        let mut hosts = self.hosts.clone();
        if hosts.is_empty() {
            hosts = self.addresses.iter().map(ToString::to_string).collect();
        }
        if hosts.is_empty() {
            hosts.push(String::new());
        }
        for host in hosts.iter_mut().filter(|host| host.is_empty()) {
            let is_there = Path::new(SOCKET_FOLDER).is_dir();
            *host = if is_there { SOCKET_FOLDER } else { "localhost" }.to_owned();
        }
        let ports = if self.ports.is_empty() { vec![DEFAULT_PORT] } else { self.ports.clone() };
        if ports.len() > 1 && ports.len() != hosts.len() {
            return Err(format!(
                "the connection string has {} hosts but {} ports",
                hosts.len(),
                ports.len()
            ));
        }
        Ok((hosts, ports))
    }

    fn terms(&self) -> Parsed<Terms> {
        let system = self.roots == Some(Roots::System);
        let mode = match (self.mode, &self.roots) {
            (None, _) if system => Mode::VerifyFull,
            (None, _) => Mode::Prefer,
            // As in libpq, for who gave an authority wants it to be asked.
            (Some(Mode::Require), Some(Roots::File(_))) => Mode::VerifyCa,
            (Some(mode), _) => mode,
        };
        if system && mode != Mode::VerifyFull {
            return Err("sslrootcert=system goes with sslmode=verify-full only".to_owned());
        }
        let roots = match mode {
            Mode::Disable | Mode::Prefer | Mode::Require => None,
            Mode::VerifyCa | Mode::VerifyFull => Some(match &self.roots {
                Some(roots) => roots.clone(),
                None => own_roots()?,
            }),
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err("give both sslcert and sslkey, or neither".to_owned()),
        };
        Ok(Terms { mode, roots, identity })
    }
}

/// The file that libpq reads where none is given.
fn own_roots() -> Parsed<Roots> {
    let file = std::env::home_dir().map(|home| home.join(".postgresql").join("root.crt"));
    match file.filter(|file| file.is_file()) {
        Some(file) => Ok(Roots::File(file)),
        None => Err(
            "to verify the server, give sslrootcert=FILE with the certificate of its authority, \
                     or sslrootcert=system"
                .to_owned(),
        ),
    }
}

fn port_number(text: &str) -> Parsed<u16> {
    let port = text.parse::<u16>().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "the connection string's port is no number from 1 to 65535".to_owned())
}

/// Without percent signs.
fn decoded(text: &str) -> Parsed<String> {
    let wrong =
        || "a % in the connection string is not followed by two hexadecimal digits".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong()) };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| "the connection string is not in UTF-8".to_owned())
}

#[cfg(test)]
mod tests;
