//! scratch
use chaos::model::matrix::ROWS;
#[test]
fn all() {
    for row in ROWS {
        let o = row.run();
        println!(
            "{:32} ok={} found={:?} states={} ms={}",
            row.name,
            o.is_expected(),
            o.found.iter().map(|f| (f.damage, f.scope, f.timeline.len())).collect::<Vec<_>>(),
            o.states(),
            o.took_ms
        );
        if row.name == "full" {
            for e in &o.explored {
                println!("  {} {} {} {} {:?}", e.scope.name, e.states, e.steps, e.longest, e.happened);
            }
        }
        if !o.is_expected() {
            for f in &o.found {
                println!("   {}", f.damage);
                for t in &f.timeline {
                    println!("      {} {:10} {}", t.t, t.who, t.event);
                }
            }
        }
    }
}
