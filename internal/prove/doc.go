// Package prove tests the built program as a whole. The tests start it as a process, use
// it over HTTP and with its commands, kill it, starve it and damage its files, and
// compare what is left with a journal of what it acknowledged.
//
// What a power failure leaves is not tried but worked out: trace records what the program writes and
// syncs, and a disk says which folders a crash at some moment may leave.
//
// A short sample runs with the other tests. With GATEHOUSE_PROVE=1 ("make prove") they
// measure the figures of docs/reliability.md. Each test prints a line: "PROVE " and a
// JSON object with id, engine, trials, failures and seed. GATEHOUSE_PROVE_SEED repeats
// the random choices of a run. GATEHOUSE_PROVE_BINARY names another binary to test, such
// as one with a fault; the kills at named points (package failpoint) need one that was built
// with -tags failpoints.
package prove
