package component

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/internal/fault"
)

// Failure is the error of a component. Only fail() chooses Code and Status;
// otherwise the code is EXECUTION_ERROR or EXECUTION_TIMEOUT. Details are those
// of fail(), or of an uncaught refusal of the Host, with its code.
type Failure struct {
	Message string
	Code    string
	Status  int
	Details map[string]any
	// Chosen reports whether the component called fail().
	Chosen bool
	// CutOff reports whether the run was stopped at a limit.
	CutOff bool
	// Stack, Line and Column are for the author: the position in the source, 0
	// when unknown.
	Stack        string
	Line, Column int
}

// Fault returns the failure as the caller may see it.
func (f *Failure) Fault() *fault.Error {
	return &fault.Error{Code: fault.Code(f.Code), Message: f.Message, Details: f.Details, Status: f.Status}
}

// SourceError says why a source does not compile, and where.
type SourceError struct {
	Message      string
	Module       string // the one that is wrong; "" is the component's own source
	Line, Column int    // from 1; 0 when unknown
	Import       string // what cannot be imported; "" for another mistake
}

func (e *SourceError) Error() string {
	text := e.Message
	if e.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	if e.Module != "" {
		text = "module " + e.Module + ": " + text
	}
	return text
}

func failure(e *fault.Error) *Failure {
	return &Failure{Message: e.Message, Code: string(e.Code), Status: e.HTTPStatus(), Details: e.Details}
}

// outcome returns the failure of a run that has ended, or nil.
func (i *instance) outcome(x *execution, value []byte, memory int) *Failure {
	t := x.failure
	switch {
	case x.expired:
		return cutOff(t, fault.New(fault.ExecutionTimeout, "The component did not finish within %s.", x.allowed()))
	case i.err != nil && x.outOfMemory, t != nil && t.outOfMemory(i.full(memory)):
		return cutOff(t, fault.New(fault.ExecutionError, "The component went over its memory limit of %d MiB.", memory>>20))
	case i.err != nil:
		return cutOff(nil, fault.New(fault.ExecutionError, "The component was stopped: the engine failed."))
	case t != nil:
		return t.failure()
	case value == nil:
		return failure(fault.New(fault.ExecutionError, "The component ended without a result."))
	}
	return nil
}

// cutOff returns the failure of a run that was stopped. t has the place, and is nil
// when that is not known.
func cutOff(t *thrown, e *fault.Error) *Failure {
	f := failure(e)
	f.CutOff = true
	if t != nil {
		f.place(t.Stack)
	}
	return f
}

// outOfMemory reports whether the engine ran out of memory. A script can throw an
// error that looks like the engine's; that misleads only its author. full says that
// memory may have been too full to create the error, so that nothing was thrown.
func (t *thrown) outOfMemory(full bool) bool {
	return t.Name == "InternalError" && t.Message == "out of memory" || t.Nothing && full
}

// full reports whether the run has at some time used all memory that the engine
// may allocate, except for too little to create an error.
func (i *instance) full(memory int) bool {
	const rest = 1 << 20
	return int(i.pages.Get())*pageSize >= stackBytes+int(engineLimit(memory))-rest
}

var codePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

func (t *thrown) failure() *Failure {
	f := failure(fault.New(fault.ExecutionError, "%s", t.text()))
	f.place(t.Stack)
	f.Details = t.details()
	if !t.Fail {
		if t.Code != "" && t.Code != f.Code { // an error of the Host that was not caught
			if f.Details == nil {
				f.Details = map[string]any{}
			}
			f.Details["code"] = t.Code
		}
		return f
	}
	f.Chosen, f.Message = true, t.Message
	if codePattern.MatchString(t.Code) {
		f.Code = t.Code
	}
	if t.Status >= 400 && t.Status <= 599 {
		f.Status = t.Status
	}
	return f
}

// maxDetailDepth is how deeply details may be nested, which is the same as for
// records: many JSON decoders accept no more.
const maxDetailDepth = 64

// details returns the error's details as an object. Another value becomes the
// object's member "value"; one that is nested too deeply is left out.
func (t *thrown) details() map[string]any {
	var v any
	if t.Details == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(t.Details), &v); err != nil || deeper(v, maxDetailDepth) { // it is JSON, but may be nested to any depth
		return map[string]any{"truncated": true}
	}
	switch d := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return d
	default:
		return map[string]any{"value": d}
	}
}

// deeper reports whether lists and objects are nested more than most levels deep.
func deeper(v any, most int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if most == 0 || deeper(member, most-1) {
				return true
			}
		}
		return most == 0
	case []any:
		for _, item := range v {
			if most == 0 || deeper(item, most-1) {
				return true
			}
		}
		return most == 0
	}
	return false
}

// text returns the message, after the error's name unless that says nothing.
func (t *thrown) text() string {
	switch {
	case t.Name == "" || t.Name == "Error" || t.Name == "Failure":
		return t.Message
	case t.Message == "":
		return t.Name
	}
	return t.Name + ": " + t.Message
}

// A module may be called component, too.
var positionPattern = regexp.MustCompile(`(?:^|[^/])` + regexp.QuoteMeta(sourceFile) + `:(\d+):(\d+)`)

// position returns the innermost place in the component's own source that a stack
// trace names, or 0, 0.
func position(stack string) (line, column int) {
	return numbers(positionPattern.FindStringSubmatch(stack))
}

var placePattern = regexp.MustCompile(`(?:` + moduleFolder + `([a-z][a-z0-9_]*)\.js|` + regexp.QuoteMeta(sourceFile) + `):(\d+):(\d+)`)

// place returns the innermost place in any of the author's sources that a stack trace
// names: "" is the component's own.
func place(stack string) (module string, line, column int) {
	m := placePattern.FindStringSubmatch(stack)
	if m == nil {
		return "", 0, 0
	}
	line, column = numbers(m[1:])
	return m[1], line, column
}

// numbers returns the line and column that a pattern found, or 0, 0.
func numbers(m []string) (line, column int) {
	if m == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column
}

// place sets the position, and the stack trace without what is not the author's
// source.
func (f *Failure) place(stack string) {
	f.Line, f.Column = position(stack)
	var lines []string
	for l := range strings.Lines(stack) {
		if strings.Contains(l, preludeFile) || strings.Contains(l, "(native)") {
			continue
		}
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	f.Stack = strings.Join(lines, "\n")
}
