// Package automation runs flows: declared lists of nodes (contract F1 to F7). It
// knows neither HTTP nor SQL; a Host performs operations on records and runs
// components for the nodes.
//
// A flow is decoded from JSON (Decode), checked and compiled once (Compile), and
// run many times, also concurrently (Flow.Run). Decode and Compile return an
// author's mistakes as Problems, each with its path.
//
// A type of node is one file, node_NAME.go, and one entry of nodeTypes.
//
//   - {{path}} reads inputs.NAME, vars.NAME, event.id, event.kind, the result of
//     a node by its id, or the item of an each by its name. A path goes on by
//     member names and list indexes: {{inputs.lines.0.sku}}.
//   - A text that is one {{path}} stands for the value, with its type. Inside other
//     text a value is written out: text unchanged, objects and lists as JSON, null
//     as nothing. The result is not parsed as a template again.
//   - A member that an object does not have, and an index past a list's end, are
//     null. A path into a value that is neither an object nor a list (null
//     included), or into a node that did not run, skips the node that reads it and
//     the nodes inside it; a skipped node is not counted.
//   - A declared input that was not sent, a var whose set did not run, and the
//     event of a run without one are null and can be read.
//   - when is an expression of github.com/expr-lang/expr; null counts as false. The
//     library parses it. This package evaluates it, because it counts every step
//     and every byte, which the library's virtual machine does not. Why not another
//     language: docs/decisions/0025.
//   - record.get of a record that is absent or hidden is null, as in a component.
//   - An error ends the flow with 422 EXECUTION_ERROR; only fail, in the flow or
//     in a component, chooses another status and code.
package automation

// The limits of a definition and of a run. Over one of them a run fails with
// EXECUTION_ERROR, over its context's deadline with EXECUTION_TIMEOUT.
const (
	// MaxNodes is how many nodes a definition may have, MaxNesting how deeply they
	// may be nested.
	MaxNodes   = 500
	MaxNesting = 16
	// MaxExecutions is how many nodes a run may start, those it skips included.
	MaxExecutions = 10_000
	// MaxIterations is the length of the longest list that an each accepts.
	MaxIterations = 1_000
	// MaxOutput is the size in bytes of all declared outputs together, as JSON.
	MaxOutput = 1 << 20
	// MaxWork is how many bytes a run may read and write in all: host results and
	// inputs that paths lead into, arguments of host calls, text put together.
	MaxWork = 64 << 20
	// MaxRecords is how many bytes of records all nodes of a run may receive
	// together.
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
	// MaxExpressions is the length in bytes of all expressions between {{ and }} of a flow.
	MaxExpressions = 256 << 10
	// MaxTrace is how many nodes' traces are kept of one run, MaxTraceResult how
	// much of each result.
	MaxTrace       = 1_000
	MaxTraceResult = 2 << 10

	// MaxDepth is how deeply lists and objects of a run may be nested: twice as
	// deeply as a webhook's event, so that a flow can put an event into others.
	MaxDepth = 512

	maxConditionNodes = 400
	maxConditionDepth = 32
	maxRange          = 10_000 // of a..b
	maxDepth          = 128    // of a definition
	maxListLimit      = 200
	defaultListLimit  = 50
	maxIDLength       = 64
	maxProblems       = 100
)
