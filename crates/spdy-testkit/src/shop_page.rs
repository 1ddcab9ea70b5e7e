//! A page of a shop, to measure what rewriting costs.

use std::fmt::Write;

/// Hosts of its images: `img0.cdn.test` and so on.
pub const IMAGE_HOSTS: usize = 7;
const CARDS: usize = 600;

/// Cards of a shop: 400 KB, and some 1,800 references to [`IMAGE_HOSTS`] other hosts. The same on every call.
#[must_use]
pub fn shop_page() -> Vec<u8> {
    let mut page = String::from(
        "<!doctype html><meta charset=utf-8><title>Cards</title><style>body{margin:0}</style>\n",
    );
    for card in 0..CARDS {
        let host = card % IMAGE_HOSTS;
        write!(
            page,
            "<article class=\"card card--wide js-card\" id=\"card-{card}\"><a class=\"card__link\" href=\"/thing/{card}?from=list&amp;at={card}\">\
             <img class=\"card__image\" loading=\"lazy\" width=\"320\" height=\"240\" alt=\"A thing with the number {card}\" \
             src=\"https://img{host}.cdn.test/things/{card}/small.webp?v=3&amp;q=80\" \
             srcset=\"https://img{host}.cdn.test/things/{card}/medium.webp 2x, https://img{host}.cdn.test/things/{card}/large.webp 3x\" \
             sizes=\"(min-width: 60em) 20vw, 50vw\"></a>\n<h2 class=\"card__title\">Thing number {card}</h2>\
             <p class=\"card__text\">It is as good as any other thing, and a little better than the one before it.</p>\
             <span class=\"card__price\">{card}.00</span></article>\n"
        )
        .expect("a string has room");
    }
    page.into_bytes()
}
