package audit

import (
	"strconv"
	"time"

	"gatehouse/internal/clock"
)

// Entry is one stored entry. It has no secrets.
type Entry struct {
	ID        string // grows with At; Filter.Before takes it
	At        time.Time
	UserID    string // "" for none
	User      string // their e-mail address, now or when last seen; the id if none is known
	Auth      string // KEY, JWT, TOKEN, SIGNED or SESSION; "" for none
	Method    string
	Path      string
	Endpoint  string
	Status    int
	IP        string
	Duration  time.Duration
	RequestID string
	KeyID     string // of the API key, "" for none and of entries written before it was kept
	KeyPrefix string
	Code      string // the code of the error that was answered, "" for a success
	Gate      string // where the request was stopped: one of the Gates, "" for a success
	// RealUserID is the user who signed in, where they acted as UserID.
	RealUserID string
	Request    string // JSON: {"query", "headers", "header_names", "body"}
	Response   string // JSON: {"reason", "body"}
}

// AppendJSON appends the entry as `gatehouse audit --json` prints it, on one
// line (contract G6). What does not apply is null.
func (e *Entry) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = clock.AppendRFC3339Micro(dst, clock.Micros(e.At))
	dst = appendOrNull(append(dst, `","user":`...), e.User)
	dst = appendOrNull(append(dst, `,"auth":`...), e.Auth)
	dst = appendQuoted(append(dst, `,"method":`...), e.Method)
	dst = appendQuoted(append(dst, `,"path":`...), e.Path)
	dst = appendOrNull(append(dst, `,"endpoint":`...), e.Endpoint)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(e.Status), 10)
	dst = appendOrNull(append(dst, `,"ip":`...), e.IP)
	dst = appendMillis(append(dst, `,"duration_ms":`...), e.Duration)
	dst = appendOrNull(append(dst, `,"request_id":`...), e.RequestID)
	dst = append(append(dst, `,"request":`...), e.Request...)
	dst = append(append(dst, `,"response":`...), e.Response...)
	return append(dst, '}')
}
