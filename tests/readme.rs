//! What the README shows of Rust is what compiles.

#[test]
fn the_readme_s_page_of_rust_is_an_example() {
    let example = include_str!("../examples/first.rs");
    let page = example.split_once("\n\n").map(|(_, page)| page);
    let shown: String = page
        .into_iter()
        .flat_map(str::lines)
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        })
        .collect();
    assert!(shown.contains("async fn main"), "{shown}");
    assert!(
        include_str!("../README.md").contains(&shown),
        "examples/first.rs is not what README.md shows; it should be:\n\n{shown}"
    );
}
