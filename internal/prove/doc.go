// Package prove holds the tests that treat the built program as a whole: they
// start it as a process, talk to it over HTTP and by its commands, kill it,
// starve it and damage its files, and compare what is left with a journal of
// what it had promised.
//
// A short sample runs with the other tests. With GATEHOUSE_PROVE=1 ("make
// prove") the figures of docs/reliability.md are measured. Each test prints a
// line: "PROVE " and a JSON object with id, engine, trials, failures and seed.
// GATEHOUSE_PROVE_SEED repeats a run's choices; GATEHOUSE_PROVE_BINARY puts
// another binary, such as a broken one, in the place of the one built here; the
// kills at named points (package mark) need one that was built with -tags marks.
package prove
