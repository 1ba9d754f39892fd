# Of the output of `go test`, with -v or without: what each failed test printed, and which packages failed.
/^=== (RUN|CONT|NAME|PAUSE) / { test = $3; failed = 0; next }
/^ *--- FAIL: / { print; printf "%s", printed[$3]; failed = 1; next }
/^ *--- (PASS|SKIP): / { delete printed[$3]; failed = 0; next }
/^(panic|fatal error): / { rest = 40 }
rest > 0 { print; rest--; next }
/^FAIL|^make.*: |WARNING: DATA RACE/ { print; failed = 0; next }
failed && /^ / { print; next }
{ printed[test] = substr(printed[test] $0 "\n", length(printed[test] $0 "\n") - 1500) }
