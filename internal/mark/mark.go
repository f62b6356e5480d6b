// Package mark names the places along a webhook's delivery, and along a change of
// configuration that is made ready in steps, at which a test may kill the whole process. What a delivery promises, that it takes effect once
// whatever happens, cannot be shown by kills at random alone: the instants that
// matter, such as that between a commit and its answer, last microseconds. So
// the code names them, and internal/prove kills at each of them.
//
// In a normal build At is empty and the compiler leaves nothing of it, neither
// the call nor the name. With the build tag "marks" the environment variable
// GATEHOUSE_KILL_AT says where the process ends: at a point, "run.ended"; at the
// n-th time there, "tx.statement#3"; or at the last of several points that are
// to be reached in that order, "run.ended,tx.begun".
package mark
