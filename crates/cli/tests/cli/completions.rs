//! `completions`.

use crate::support::Sandbox;

#[test]
fn every_shell_gets_a_script_with_the_verbs() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "PowerShell", "Elvish"] {
        let outcome = sandbox.run(&["completions", shell]);
        assert_eq!(outcome.code, Some(0), "{shell}: {}", outcome.err);
        for word in ["chongming-task", "reconcile", "owned-buckets"] {
            assert!(outcome.out.contains(word), "{shell} lacks {word}");
        }
    }
}
