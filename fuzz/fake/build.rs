//! Compiles the functions that take any number of arguments, which Rust cannot write.

fn main() {
    println!("cargo:rerun-if-changed=src/variadic.c");
    cc::Build::new().file("src/variadic.c").warnings(true).compile("variadic");
}
