//! Tells the compiler which Ruby this is built for (`ruby_gte_3_3`).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rb_sys_env::activate()?;
    Ok(())
}
