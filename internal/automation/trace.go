package automation

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// Trace is the record of a run's nodes, in the order in which they began.
type Trace struct {
	Steps []Step
	// Dropped counts the steps beyond the first MaxTrace.
	Dropped int
	last    time.Time // when the last step ended
}

// Step is one execution of one node. Steps inside an if or each follow it, with a
// greater Depth; its Took includes theirs.
type Step struct {
	Node  string // its id, or its path when it has none
	Type  string
	Depth int
	Took  time.Duration
	// SkippedBecause says what could not be read, Error how the node failed. At most
	// one of them is set.
	SkippedBecause string
	Error          string
	details        jsontext.Value // of Error; nil for none
	result         jsontext.Value
	truncated      bool
	began          time.Time
}

// Result returns the node's result as JSON. One that is longer than MaxTraceResult
// is truncated: text is then a JSON string of its beginning.
func (s *Step) Result() (text jsontext.Value, truncated bool) { return s.result, s.truncated }

// keep stores the beginning of a result. It copies that, because the result may be
// large and otherwise unused.
func (s *Step) keep(result any) {
	text, err := appendJSON(nil, result, MaxTraceResult)
	if err != nil || len(text) > MaxTraceResult {
		text, s.truncated = wtf8.AppendUTF8(nil, string(text[:min(len(text), MaxTraceResult)])), true
	}
	s.result = slices.Clip(text)
}

// explain stores the details of an error, which name for instance the fields that were
// wrong. Of more than MaxTraceResult it stores a JSON string of their beginning.
func (s *Step) explain(err error) {
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Details) == 0 {
		return
	}
	text, err := json.Marshal(f.Details)
	if err != nil {
		return
	}
	if len(text) > MaxTraceResult {
		text, s.truncated = wtf8.AppendUTF8(nil, string(text[:MaxTraceResult])), true
	}
	s.details = slices.Clone(text)
}

// JSON returns the trace as a list of {"node", "type", "depth", "took_us"} with one of
// "result", "skipped" and "error". An error may have "details". "truncated": true says that
// the result or the details are a text of their beginning.
func (t *Trace) JSON() jsontext.Value {
	text := append(make([]byte, 0, 128*len(t.Steps)+2), '[')
	for i := range t.Steps {
		if i > 0 {
			text = append(text, ',')
		}
		text = t.Steps[i].append(text)
	}
	return append(text, ']')
}

func (s *Step) append(dst []byte) []byte {
	dst = wtf8.AppendUTF8(append(dst, `{"node":`...), s.Node)
	dst = wtf8.AppendUTF8(append(dst, `,"type":`...), s.Type)
	dst = strconv.AppendInt(append(dst, `,"depth":`...), int64(s.Depth), 10)
	dst = strconv.AppendInt(append(dst, `,"took_us":`...), s.Took.Microseconds(), 10)
	switch {
	case s.SkippedBecause != "":
		dst = wtf8.AppendUTF8(append(dst, `,"skipped":`...), s.SkippedBecause)
	case s.Error != "":
		dst = wtf8.AppendUTF8(append(dst, `,"error":`...), s.Error)
		if s.details != nil {
			dst = append(append(dst, `,"details":`...), s.details...)
		}
	default:
		dst = append(append(dst, `,"result":`...), s.result...)
	}
	if s.truncated {
		dst = append(dst, `,"truncated":true`...)
	}
	return append(dst, '}')
}

// open begins a step and returns its index, or -1 when it is dropped. A step begins
// when the one before it ended, so that the clock is read once for each node.
func (t *Trace) open(n *instruction, depth int) int {
	if len(t.Steps) == MaxTrace {
		t.Dropped++
		return -1
	}
	t.Steps = append(t.Steps, Step{Node: n.name, Type: n.kind, Depth: depth, began: t.last})
	return len(t.Steps) - 1
}

// close ends a step with a result, with what it was skipped for, or with an error.
func (t *Trace) close(at int, result any, skip *skipped, err error) {
	if at < 0 {
		return
	}
	s := &t.Steps[at]
	t.last = time.Now()
	s.Took = t.last.Sub(s.began)
	switch {
	case skip != nil:
		s.SkippedBecause = skip.Error()
	case err != nil:
		s.Error = err.Error()
		if at == len(t.Steps)-1 { // those around it fail for the same reason
			s.explain(err)
		}
	default:
		s.keep(result)
	}
}
