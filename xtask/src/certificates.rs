//! Certificates for the throw-away server: an authority, and the server's own for the name `localhost`.

use std::path::{Path, PathBuf};
use std::process::Command;

use chongming_test_postgres::finish;

/// Where they lie.
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) key: PathBuf,
}

/// Makes them in a folder; `openssl` gives the command, as the user whom the server runs as.
pub(crate) fn make(folder: &Path, openssl: impl Fn() -> Command) -> Result<Certificates, String> {
    let file = |name: &str| folder.join(name);
    let (authority, authority_key) = (file("authority.pem"), file("authority.key"));
    let (server, key, request) = (file("server.pem"), file("server.key"), file("server.csr"));
    let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let mut make = openssl();
    make.args(["req", "-x509"]).args(new).args(["-days", "30", "-subj", "/CN=test authority"]);
    finish(make.arg("-keyout").arg(&authority_key).arg("-out").arg(&authority))?;
    let mut ask = openssl();
    ask.arg("req").args(new).args(["-subj", "/CN=localhost"]);
    ask.args(["-addext", "subjectAltName=DNS:localhost", "-keyout"]).arg(&key);
    finish(ask.arg("-out").arg(&request))?;
    let mut sign = openssl();
    sign.args(["x509", "-req", "-days", "30", "-copy_extensions", "copy", "-in"]).arg(&request);
    sign.arg("-CA").arg(&authority).arg("-CAkey").arg(&authority_key);
    finish(sign.args(["-set_serial", "1", "-out"]).arg(&server))?;
    Ok(Certificates { authority, server, key })
}
