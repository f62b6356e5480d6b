// Package automation runs flows: declared lists of nodes (contract F1 to F7). It
// knows no HTTP and no SQL; a Host does what nodes want of records and components.
//
// A flow is decoded from JSON (Decode), checked and compiled once (Compile), and
// run many times, also at once (Flow.Run). Decode and Compile report an author's
// mistakes, each with its path.
//
// A type of node is one file, node_NAME.go, and one entry of nodeTypes.
//
//   - {{path}} reads inputs.NAME, vars.NAME, event.id, event.kind, the result of
//     a node by its id, or the item of an each by its name. A path goes on by
//     member names and list indexes: {{inputs.lines.0.sku}}.
//   - A text that is one {{path}} has the value with its type. Inside other text
//     a value is written out: text as it is, objects and lists as JSON, null as
//     nothing. What was written is never read again as a template.
//   - A member that an object does not have, and an index past a list's end, are
//     null. A path into what is neither an object nor a list (null included), or
//     into a node that did not run, skips the node that reads it, with the nodes
//     inside it; it is not counted.
//   - A declared input that was not sent, a var whose set did not run, and the
//     event of a run without one are null and can be read.
//   - when is an expression of github.com/expr-lang/expr. That library parses it.
//     It is evaluated here, where every step and every byte is counted, which the
//     library's own machine does not do. null counts as false. Why not another
//     language: docs/decisions/0025.
//   - record.get of a record that is absent or hidden is null, as in a component.
//   - An error ends the flow with 422 EXECUTION_ERROR; only fail, in the flow or
//     in a component, chooses another status and code.
package automation

// What one flow and one run may use. Over a limit a run fails with
// EXECUTION_ERROR; over its context's deadline with EXECUTION_TIMEOUT.
const (
	// MaxNodes is how many nodes a definition may have, MaxNesting how deeply they
	// may be nested.
	MaxNodes   = 500
	MaxNesting = 16
	// MaxExecutions is how many nodes a run may start, those it skips included.
	MaxExecutions = 10_000
	// MaxIterations is the length of the longest list that one each may go through.
	MaxIterations = 1_000
	// MaxOutput is the size of the declared outputs together, as JSON.
	MaxOutput = 1 << 20
	// MaxWork is how many bytes a run may read and write in all: host results and
	// inputs that paths lead into, arguments of host calls, text put together.
	MaxWork = 64 << 20
	// MaxRecords is how many bytes of records a run may be handed by all its
	// nodes together.
	MaxRecords = 8 << 20
	// MaxReturned is how many bytes all components of a run may return together.
	MaxReturned = 16 << 20
	// MaxSteps is how many steps all conditions of a run may take together.
	MaxSteps = 2_000_000
	// MaxTemplate is the length of one text with {{…}} in bytes, MaxPath the
	// number of steps of one path.
	MaxTemplate = 64 << 10
	MaxPath     = 64
	// MaxCondition is the length of a when in bytes.
	MaxCondition = 2_000
	// MaxTrace is how many nodes' traces are kept of one run, MaxTraceResult how
	// much of each result.
	MaxTrace       = 1_000
	MaxTraceResult = 2 << 10

	// MaxDepth is how deeply lists and objects of a run may be nested: twice as deep
	// as a webhook's event may be, which leaves room around it.
	MaxDepth = 512

	maxConditionNodes = 400
	maxConditionDepth = 32
	maxPattern        = 256     // of matches, in bytes
	maxPatternWork    = 2 << 20 // instructions × bytes of one match
	maxRange          = 10_000  // of a..b
	maxDepth          = 128     // of a definition
	maxListLimit      = 200
	defaultListLimit  = 50
	maxIDLength       = 64
	maxProblems       = 100
)
