// Package httpapi has what all endpoints share: the envelope, strict decoding of
// bodies, routes as values, hosts, origins and client addresses.
package httpapi

import (
	"encoding/json"
	"errors"
	"slices"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// AppendReply appends a success in the envelope (contract H4), or bare.
func AppendReply(dst []byte, r *Reply) []byte {
	data := r.Data
	if data == nil {
		data = []byte("null")
	}
	if r.Bare {
		return append(dst, data...)
	}
	dst = append(dst, `{"data":`...)
	dst = append(dst, data...)
	dst = append(dst, `,"meta":`...)
	if r.Meta == nil {
		dst = append(dst, "{}"...)
	} else {
		dst = append(dst, r.Meta...)
	}
	return append(dst, '}')
}

// Enclose is AppendReply for a large answer: it puts the envelope around the
// data in place, so that the data is in memory once.
func Enclose(r *Reply) []byte {
	if r.Bare {
		return r.Data
	}
	const before = `{"data":`
	body := append(slices.Grow(r.Data, len(before)+len(r.Meta)+len(`,"meta":{}}`)), before...)
	copy(body[len(before):], r.Data)
	copy(body, before)
	body = append(body, `,"meta":`...)
	if r.Meta == nil {
		body = append(body, "{}"...)
	} else {
		body = append(body, r.Meta...)
	}
	return append(body, '}')
}

// AppendError appends an error in the envelope (contract H5); details is always
// an object.
func AppendError(dst []byte, e *fault.Error) []byte {
	dst = append(dst, `{"error":{"code":`...)
	dst = wtf8.AppendUTF8(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = wtf8.AppendUTF8(dst, e.Message)
	dst = append(dst, `,"details":`...)
	details, err := json.Marshal(e.Details)
	if err != nil || e.Details == nil {
		details = []byte("{}")
	}
	dst = append(dst, details...)
	return append(dst, "}}"...)
}

// Public returns the error that a caller may see: err itself when it is a
// *fault.Error, else the fixed INTERNAL, which reveals nothing.
func Public(err error) *fault.Error {
	var e *fault.Error
	if errors.As(err, &e) {
		return e
	}
	return errInternal
}

var errInternal = fault.New(fault.Internal, "something went wrong on our side; the request id finds it in the log")
