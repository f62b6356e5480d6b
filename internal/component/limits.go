package component

import "time"

// The limits of one run. Over one of them it fails with EXECUTION_ERROR, over its
// time with EXECUTION_TIMEOUT.
const (
	// DefaultTimeout and MaxTimeout bound a component's run, host calls included.
	DefaultTimeout = 5 * time.Second
	MaxTimeout     = 30 * time.Second
	// VerifierCPU and VerifierMemory bound a webhook verifier: its CPU time, and its
	// memory in addition to that of the delivery itself.
	VerifierCPU    = 250 * time.Millisecond
	VerifierMemory = 16 << 20
	// CompileTurns bounds parsing and the top level of a source, by iterations of
	// the engine's loops: 0.3 to 1 s of an idle core. It is a limit of work and not
	// of time because the result is kept: the same source always has the same one.
	CompileTurns = 100_000_000
	// MaxMemory is the whole memory of one run: engine, code, stack and data.
	MaxMemory = 32 << 20
	// MaxSource, MaxInput and MaxOutput bound texts, in bytes. MaxInput is for
	// inputs and context together, or for a verifier's raw body; a verifier may
	// return twice that body where it is more than MaxOutput.
	MaxSource = 256 << 10
	MaxInput  = 10 << 20
	MaxOutput = 1 << 20
	// MaxModules and MaxModuleBytes bound the modules that a tenant's components share,
	// and their sources together; one is at most MaxSource.
	MaxModules     = 64
	MaxModuleBytes = 1 << 20
	// MaxConfig bounds a component's config, in bytes of JSON, MaxSecrets how many secrets
	// it may have, and MinSecret and MaxSecret each of these, in characters and bytes.
	MaxConfig  = 16 << 10
	MaxSecrets = 32
	MinSecret  = 8
	MaxSecret  = 8 << 10
	// MaxHostCalls is how many records.* calls a run may make, MaxHostBytes the
	// size of all their arguments and results together.
	MaxHostCalls = 100
	MaxHostBytes = 8 << 20
	// MaxConsoleLines and MaxConsoleBytes bound the console; a line is cut at
	// MaxConsoleLine bytes. The rest is dropped.
	MaxConsoleLines = 200
	MaxConsoleBytes = 64 << 10
	MaxConsoleLine  = 8 << 10
	// MaxURL bounds a URL and its base, in bytes.
	MaxURL = 16 << 10
	// MaxRandomBytes is the largest result of crypto.getRandomValues.
	MaxRandomBytes = 64 << 10
)

const (
	// verifierWall and compileWall bound the time of runs that are limited by their
	// work. Exceeding them means that the service was too busy, which is OVERLOADED.
	// maxCompileWait is how long a compilation waits for a place before that.
	verifierWall   = 5 * time.Second
	compileWall    = 20 * time.Second
	maxCompileWait = 5 * time.Second
	// maxFailure bounds the description of an uncaught error, in bytes of JSON; the
	// prelude shortens a longer one.
	maxFailure = 256 << 10
	// maxErrorName is where the prelude cuts the name of an error, in characters.
	maxErrorName = 100
	// grace is how long after its deadline a run may be ended by the engine's own
	// interrupt, which gives the author a stack trace. Then it is stopped.
	grace = 5 * time.Millisecond
	// graceTurns is the same for a run that is limited by its work.
	graceTurns = 50 * supply
	// supply is how many iterations of loops a run may make before the host reads
	// the clock again: some 40 µs, a few hundred at worst.
	supply = 20_000
	// yieldEvery is how often a busy run lets other goroutines have the core.
	yieldEvery = time.Millisecond
	// maxJSStack is the engine's limit for its own stack. The module reserves
	// four times that, below its data.
	maxJSStack = 256 << 10

	pageSize   = 64 << 10
	stackBytes = 1 << 20 // the C stack lies at [0, stackBytes) and grows down
	// clearedStack is the part of the C stack that is cleared after each run; the
	// deeper part is returned to the operating system.
	clearedStack = 32 << 10
	// engineReserveShift sets the part of a run's memory that the engine may not
	// allocate, so that a script gets an "out of memory" that it can catch.
	engineReserveShift = 3 // an eighth
)
