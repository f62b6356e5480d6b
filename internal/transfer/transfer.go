// Package transfer moves the records of an entity type out to a file and in from one, as
// CSV or NDJSON (contract S20–S22, Y17).
//
// Both ways read and write as a stream: what is held in memory is a page or a batch. All
// that a record may be is decided by package records, under a viewer.
package transfer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Format is how records stand in a file.
type Format string

// The formats. NDJSON is one JSON object a line.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson"
)

// ParseFormat returns the format of a name, or where it is "" that of a file by its
// ending, CSV for any other. ok is false for an unknown name.
func ParseFormat(name, file string) (f Format, ok bool) {
	if name != "" {
		return Format(name), slices.Contains([]Format{CSV, NDJSON}, Format(name))
	}
	switch strings.ToLower(path.Ext(file)) {
	case ".ndjson", ".jsonl":
		return NDJSON, true
	}
	return CSV, true
}

// The members of a record that are no fields.
const (
	idMember    = "id"
	ownerMember = "owner_id"
	created     = "created_at"
	updated     = "updated_at"
)

// errUsers refuses the built-in entity type, which has other members and no creation.
func errUsers(entity string) error {
	if entity != schema.UserEntity {
		return nil
	}
	return fault.New(fault.Validation, "the entity type user cannot be imported or exported as records: gatehouse user list --json prints the users")
}

// maxReason is the length of a reason in bytes, about.
const maxReason = 400

// reason returns why a line failed, on one line.
func reason(err *fault.Error) string {
	text := err.Message
	if fields, ok := err.Details["fields"].(map[string]string); ok && len(fields) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			list = append(list, name+": "+fields[name])
		}
		text = strings.Join(list, "; ")
	}
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// reason returns why the entry failed, on one line.
func (e *entry) reason(err *fault.Error) string {
	fields, ok := err.Details["fields"].(map[string]string)
	if ok && len(e.words) > 0 {
		fields = maps.Clone(fields)
		for name, words := range e.words {
			if fields[name] != "" {
				fields[name] = words
			}
		}
		err = err.With("fields", fields)
	}
	return reason(err)
}

// invalid returns a VALIDATION without details.
func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.Validation, "%s", fmt.Sprintf(format, args...))
}
