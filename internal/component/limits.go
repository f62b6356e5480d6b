package component

import "time"

// What one run may use. Over a limit a run fails with EXECUTION_ERROR, over
// its time with EXECUTION_TIMEOUT.
const (
	// DefaultTimeout and MaxTimeout bound a component's run, host calls included.
	DefaultTimeout = 5 * time.Second
	MaxTimeout     = 30 * time.Second
	// VerifierCPU and VerifierMemory bound a webhook verifier: the CPU time that
	// it uses, and its memory, on top of which comes what the delivery itself
	// takes up.
	VerifierCPU    = 250 * time.Millisecond
	VerifierMemory = 16 << 20
	// CompileTurns bounds parsing and the top level of a source, by turns of the
	// engine's loops: 0.3 to 1 s of an idle core. Work and not time,
	// because the verdict is kept: the same source gets the same one always.
	CompileTurns = 100_000_000
	// MaxMemory is the whole memory of one run: engine, code, stack and data.
	MaxMemory = 32 << 20
	// MaxSource, MaxInput and MaxOutput bound texts, in bytes. MaxInput is for
	// inputs and context together, or for a verifier's raw body; a verifier may
	// return twice that body where it is more than MaxOutput.
	MaxSource = 256 << 10
	MaxInput  = 10 << 20
	MaxOutput = 1 << 20
	// MaxHostCalls is how many records.* calls a run may make, MaxHostBytes
	// what their arguments and results may add up to.
	MaxHostCalls = 100
	MaxHostBytes = 8 << 20
	// MaxConsoleLines and MaxConsoleBytes bound what is kept of console.*; a
	// single line is cut at MaxConsoleLine bytes. The rest is dropped.
	MaxConsoleLines = 200
	MaxConsoleBytes = 64 << 10
	MaxConsoleLine  = 8 << 10
	// MaxRandomBytes is what crypto.getRandomValues gives at once.
	MaxRandomBytes = 64 << 10
)

const (
	// verifierWall and compileWall bound what is judged by its work by the clock,
	// too: past them the platform was too busy, which is OVERLOADED.
	// maxCompileWait is how long a compilation waits for a place before that.
	verifierWall   = 5 * time.Second
	compileWall    = 20 * time.Second
	maxCompileWait = 5 * time.Second
	// maxFailure bounds the description of an uncaught error, in bytes of JSON;
	// the prelude cuts what would make it longer.
	maxFailure = 256 << 10
	// grace is how long past its deadline a run is asked to stop by the
	// engine's own interrupt, which leaves a stack trace for the author;
	// after that it is cut off.
	grace = 5 * time.Millisecond
	// graceTurns is the same for a run that is bounded by its work.
	graceTurns = 50 * supply
	// supply is how many turns of loops a run may make before the host looks
	// at the clock again: some 40 µs, a few hundred at worst.
	supply = 20_000
	// yieldEvery is how often a busy run lets other goroutines have the core.
	yieldEvery = time.Millisecond
	// maxJSStack is the engine's limit for its own stack. The module reserves
	// four times that, below its data.
	maxJSStack = 256 << 10

	pageSize   = 64 << 10
	stackBytes = 1 << 20 // the C stack lies at [0, stackBytes) and grows down
	// clearedStack is the part of the C stack that is wiped by hand after each
	// run; what lies deeper is given back to the operating system.
	clearedStack = 32 << 10
	// engineReserve is what of a run's memory the engine's allocator may not
	// hand out, so that a script meets an "out of memory" it can catch.
	engineReserveShift = 3 // an eighth
)
