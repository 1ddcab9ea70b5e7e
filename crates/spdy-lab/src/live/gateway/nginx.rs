//! The configuration of nginx as a gateway: one process, no compression, no header of its own that it can omit.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::Path;

use spdy_sim::options::RaceProtocol;

/// Modules that nginx may be built without, each with a folder for its temporary files. The default folders belong to another user.
const MODULES_WITH_FILES: [&str; 3] = ["fastcgi", "uwsgi", "scgi"];

/// The configuration for `protocol` on `ports` with the files in `folder`. `build` is the output of `nginx -V`.
pub(super) fn configuration(
    protocol: RaceProtocol,
    ports: &[u16],
    upstream: SocketAddrV4,
    folder: &Path,
    build: &str,
) -> String {
    let folder = folder.display();
    let mut listen = String::new();
    let parameters = match protocol {
        RaceProtocol::H2 => " ssl http2",
        _ if protocol.is_secure() => " ssl",
        _ => "",
    };
    for port in ports {
        let _ = writeln!(listen, "    listen {port}{parameters};"); // a String takes all
    }
    let mut files = String::new();
    for module in MODULES_WITH_FILES {
        if !build.contains(&format!("--without-http_{module}_module")) {
            let _ = writeln!(files, "  {module}_temp_path {folder}/{module};");
        }
    }
    let tls = match protocol.is_secure() {
        true => format!(
            "    ssl_certificate {folder}/chain.pem;\n    ssl_certificate_key {folder}/key.pem;\n    ssl_protocols TLSv1.2 TLSv1.3;\n"
        ),
        false => String::new(),
    };
    format!(
        "daemon off;
master_process off;
user root root; # of this namespace: the user who started it
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/client_body;
  proxy_temp_path {folder}/proxy;
{files}\
  gzip off;
  server_tokens off;
  merge_slashes off;
  underscores_in_headers on;
  ignore_invalid_headers off;
  large_client_header_buffers 16 64k;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  client_header_timeout 1d;
  client_body_timeout 1d;
  send_timeout 1d;
  keepalive_requests 1000000;
  upstream site {{
    server {upstream} max_fails=0;
    keepalive 128;
  }}
  server {{
{listen}{tls}\
    location / {{
      proxy_pass http://site;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection \"\";
      proxy_redirect off;
      proxy_pass_header Date;
      proxy_pass_header Server;
      proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;
      proxy_read_timeout 1d;
      proxy_buffer_size 64k;
      proxy_buffers 64 64k;
      proxy_busy_buffers_size 1m;
      proxy_max_temp_file_size 0;
    }}
  }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn written(protocol: RaceProtocol, build: &str) -> String {
        let upstream = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 10_000);
        configuration(protocol, &[443, 8443], upstream, Path::new("/f"), build)
    }

    #[test]
    fn only_h2_offers_h2_and_only_tls_has_a_certificate() {
        let h2 = written(RaceProtocol::H2, "");
        assert!(h2.contains(
            "listen 443 ssl http2;\n    listen 8443 ssl http2;\n    ssl_certificate /f/chain.pem;"
        ));
        let https = written(RaceProtocol::Https, "");
        assert!(https.contains("listen 443 ssl;"), "{https}");
        let http = written(RaceProtocol::Http, "");
        assert!(
            http.contains("listen 443;") && !http.contains("ssl"),
            "{http}"
        );
    }

    #[test]
    fn modules_that_the_build_omits_have_no_folder() {
        let text = written(RaceProtocol::H2, "--prefix=/ --without-http_scgi_module");
        assert!(text.contains("  uwsgi_temp_path /f/uwsgi;\n") && !text.contains("scgi_temp"));
    }
}
