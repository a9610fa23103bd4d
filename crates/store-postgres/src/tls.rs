//! TLS as libpq does it, by `sslmode`; never weaker than what was asked for.
//!
//! The driver is told that every stream starts with a handshake of ours. That handshake then asks the server
//! for TLS, or leaves it, as the mode says: so plain streams are watched for silence like all others.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::stream::Watched;

/// What libpq calls `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Never.
    Disable,
    /// If the server offers it.
    Prefer,
    /// Always, with whomever.
    Require,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Likewise, made out to the host that was asked for.
    VerifyFull,
}

/// Certificates that prove who the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Those in a file.
    File(PathBuf),
    /// Those that the operating system trusts.
    System,
}

/// What the connection string says about TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) mode: Mode,
    /// Present where the mode verifies.
    pub(crate) roots: Option<Roots>,
    /// Our own certificate and key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// What the server offers does not fit what was asked for.
#[derive(Debug)]
pub(crate) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server does not offer TLS")
    }
}

impl std::error::Error for Refused {}

/// Makes streams to the server.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Option<(Mode, MakeRustlsConnect)>,
    /// A server that is silent for so long is given up.
    limit: Duration,
}

impl Connector {
    /// Reads the certificates.
    pub(crate) fn new(terms: &Terms, limit: Duration) -> Result<Self, String> {
        let tls = match terms.mode {
            Mode::Disable => None,
            mode @ (Mode::Prefer | Mode::Require | Mode::VerifyCa | Mode::VerifyFull) => {
                Some((mode, MakeRustlsConnect::new(client(terms)?)))
            }
        };
        Ok(Self { tls, limit })
    }

    /// The same, but with a server that may stay silent.
    pub(crate) fn patient(&self) -> Self {
        Self { limit: Duration::from_secs(365 * 86_400), ..self.clone() }
    }
}

fn client(terms: &Terms) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let anchors = terms.roots.as_ref().map(Anchors::read).transpose()?;
    let check_name = terms.mode == Mode::VerifyFull;
    let verifier = Verifier { anchors, check_name, provider: Arc::clone(&provider) };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    match &terms.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let private = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| format!("sslkey {} cannot be read: {error}", key.display()))?;
            builder.with_client_auth_cert(chain, private).map_err(|error| {
                format!("sslcert {} and its key do not fit: {error}", certificate.display())
            })
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("certificate file {}: {error}", file.display());
    let all = CertificateDer::pem_file_iter(file).map_err(unreadable)?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(unreadable)?;
    if all.is_empty() {
        return Err(format!("certificate file {} has no certificate in it", file.display()));
    }
    Ok(all)
}

/// Certificates that are trusted.
#[derive(Debug)]
struct Anchors {
    store: RootCertStore,
    /// The same as they came: a server's own certificate may be its own authority, as with OpenSSL.
    themselves: Vec<CertificateDer<'static>>,
}

impl Anchors {
    fn read(roots: &Roots) -> Result<Self, String> {
        let themselves = match roots {
            Roots::File(file) => certificates(file)?,
            Roots::System => rustls_native_certs::load_native_certs().certs,
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(themselves.iter().cloned());
        match roots {
            Roots::System if store.is_empty() => {
                Err("the system has no trusted certificates; give sslrootcert=FILE".to_owned())
            }
            Roots::File(_) => Ok(Self { store, themselves }),
            Roots::System => Ok(Self { store, themselves: Vec::new() }),
        }
    }
}

/// Judges the server's certificate; its signatures are checked in every mode.
#[derive(Debug)]
struct Verifier {
    anchors: Option<Anchors>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(anchors) = &self.anchors else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if !anchors.themselves.contains(end_entity) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &anchors.store,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.check_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Channel;
    type TlsConnect = Negotiation;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Negotiation, Infallible> {
        Ok(Negotiation { connector: self.clone(), host: host.to_owned() })
    }
}

/// One connection's start.
pub(crate) struct Negotiation {
    connector: Connector,
    host: String,
}

impl TlsConnect<Socket> for Negotiation {
    type Stream = Channel;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Channel>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let mut stream = Watched::new(stream, self.connector.limit);
            let Some((mode, mut tls)) = self.connector.tls else {
                return Ok(Channel::Plain(stream));
            };
            // Length and code of the protocol's SSLRequest.
            stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await?;
            stream.flush().await?;
            match (stream.read_u8().await?, mode) {
                (b'S', _) => {
                    let Ok(tls) =
                        MakeTlsConnect::<Watched<Socket>>::make_tls_connect(&mut tls, &self.host);
                    Ok(Channel::Encrypted(Box::new(tls.connect(stream).await?)))
                }
                (_, Mode::Disable | Mode::Prefer) => Ok(Channel::Plain(stream)),
                (_, Mode::Require | Mode::VerifyCa | Mode::VerifyFull) => {
                    Err(io::Error::other(Refused))
                }
            }
        })
    }
}

type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Watched<Socket>>>::Stream;

/// A stream to the server.
pub(crate) enum Channel {
    Plain(Watched<Socket>),
    Encrypted(Box<Encrypted>),
}

impl TlsStream for Channel {
    fn channel_binding(&self) -> ChannelBinding {
        match self {
            Self::Plain(_) => ChannelBinding::none(),
            Self::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
