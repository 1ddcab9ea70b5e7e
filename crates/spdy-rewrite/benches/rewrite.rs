//! Pages and sheets, in bytes a second, beside what only reads them in the same run: machines differ, ratios less.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy_markup::css_urls;
use spdy_rewrite::css::{self, StylesheetContext};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config, HostConfig};
use spdy_testkit::shop_page::{IMAGE_HOSTS, shop_page};
use url::Url;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of a write, as a proxy reads them.
const CHUNK: usize = 16 * 1024;

fn rules(discover: bool) -> Arc<Rules> {
    let site = Url::parse("https://www.site.test").unwrap();
    let hosts = if discover {
        Vec::new()
    } else {
        (0..IMAGE_HOSTS)
            .map(|host| HostConfig::all_kinds(&format!("img{host}.cdn.test")))
            .collect()
    };
    let config = Config {
        hosts,
        discover,
        ..Config::default()
    };
    let keys = Keys::new(Key::new('a', &[7; 32]).unwrap(), None);
    Arc::new(Rules::compile(&site, &config, Some(keys)).unwrap())
}

/// Utility classes, and now and then an icon of another host.
fn sheet() -> String {
    let mut sheet = String::from("@charset \"utf-8\";\n");
    for class in 0..4000 {
        sheet.push_str(&format!(".u-{class}:hover, .v-{class} > li + li {{ margin: {class}px auto; color: #{class:06x}; }}\n"));
        if class % 100 == 0 {
            sheet.push_str(&format!(".i-{class}::before {{ background: url(\"https://img0.cdn.test/i/{class}.svg\") no-repeat }}\n"));
        }
    }
    sheet
}

fn rewrite_page(rules: &Arc<Rules>, page: &[u8]) -> usize {
    let url = rules.site().clone();
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    let head = PageHead::rewrite(rules, &url, StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(rules, &url, head, None);
    let mut out = Vec::with_capacity(CHUNK * 2);
    let mut len = 0;
    for chunk in page.chunks(CHUNK) {
        rewriter.write(chunk, &mut out);
        len += out.len();
        out.clear();
    }
    black_box(rewriter.end(&mut out));
    len + out.len()
}

/// lol_html over the same elements, changing nothing.
fn read_page(page: &[u8]) -> usize {
    let mut len = 0;
    let look = lol_html::element!(
        "img, link, script, style, [style], [background]",
        |element| {
            black_box(element.get_attribute("src"));
            Ok(())
        }
    );
    let settings = lol_html::Settings::new()
        .append_element_content_handler(look)
        .with_strict(false);
    let mut rewriter = lol_html::HtmlRewriter::new(settings, |chunk: &[u8]| len += chunk.len());
    for chunk in page.chunks(CHUNK) {
        rewriter.write(chunk).unwrap();
    }
    rewriter.end().unwrap();
    len
}

fn rewrite_sheet(rules: &Rules, text: &str) -> usize {
    let sheet = StylesheetContext::own(&rules.site().join("/a.css").unwrap());
    css::rewrite(rules, &sheet, text, &mut |found| {
        black_box(found);
    })
    .len()
}

/// The best of many runs: what the code costs, whatever else the machine does.
fn best(mut run: impl FnMut() -> usize) -> Duration {
    let time = |run: &mut dyn FnMut() -> usize| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..60).map(|_| time(&mut run)).min().unwrap_or_default()
}

/// Ratios of one run, which is what to keep.
#[allow(clippy::print_stdout, reason = "a bench prints its results")]
fn compare(_: &mut Criterion) {
    let (page, sheet) = (shop_page(), sheet());
    let (listed, found) = (rules(false), rules(true));
    let rows = [
        (
            "page, read by lol_html",
            page.len(),
            best(|| read_page(&page)),
        ),
        (
            "page, rewritten, listed hosts",
            page.len(),
            best(|| rewrite_page(&listed, &page)),
        ),
        (
            "page, rewritten, discovered hosts",
            page.len(),
            best(|| rewrite_page(&found, &page)),
        ),
        (
            "sheet, read by cssparser",
            sheet.len(),
            best(|| css_urls::urls(&sheet).len()),
        ),
        (
            "sheet, rewritten",
            sheet.len(),
            best(|| rewrite_sheet(&listed, &sheet)),
        ),
    ];
    for (name, len, took) in rows {
        let ms = took.as_secs_f64() * 1e3;
        println!(
            "{name:36} {:5} KB {ms:7.2} ms {:6.0} MB/s",
            len / 1024,
            len as f64 / 1e3 / ms
        );
    }
    println!(
        "page, rewritten / read: {:.2} x",
        rows[1].2.as_secs_f64() / rows[0].2.as_secs_f64()
    );
}

fn throughput(c: &mut Criterion) {
    let (page, sheet) = (shop_page(), sheet());
    let listed = rules(false);
    let mut group = c.benchmark_group("rewrite");
    group.throughput(Throughput::Bytes(page.len() as u64));
    group.bench_function("page, read", |b| b.iter(|| read_page(&page)));
    group.bench_function("page, rewritten", |b| {
        b.iter(|| rewrite_page(&listed, &page));
    });
    group.throughput(Throughput::Bytes(sheet.len() as u64));
    group.bench_function("sheet", |b| b.iter(|| rewrite_sheet(&listed, &sheet)));
    group.finish();
}

criterion_group!(benches, compare, throughput);
criterion_main!(benches);
