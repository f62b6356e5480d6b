// Package consoletest has the tests of the console in a browser: the real program, a real
// Chromium, both engines. The scripts are in web/tests. Each does one job on a tenant of
// its own:
//
//	go test ./internal/consoletest -run 'TestConsole/sqlite' -scripts api-keys,audit
//
// runs two of them on one engine. In "make test" each script runs on one engine, every
// second one on the other; with GATEHOUSE_PROVE=1 all run on both, and long.
package consoletest
