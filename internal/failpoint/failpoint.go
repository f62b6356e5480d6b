// Package failpoint has the failpoints of the program: named points at which a test can
// kill the process. They are on the path of a webhook's delivery, and of a change of
// configuration that is made in steps. Random kills cannot show that a delivery
// takes effect once: the critical intervals, such as that between a commit and its
// answer, last microseconds. So package prove kills at each of the points.
//
// In a normal build At is empty, and the compiler removes the calls and the names.
// With the build tag "failpoints" the environment variable GATEHOUSE_KILL_AT says where
// the process is killed: at a point, "run.ended"; at the n-th time that it is
// reached, "tx.statement#3"; or at the last of several points that must be reached
// in order, "run.ended,tx.begun".
package failpoint
