package audit

import (
	"encoding/json"
	"strings"

	"gatehouse/internal/fault"
)

// A gate is one of the checks that a request passes, in the order of contract
// H3. The gate at which a request was stopped follows from the code of its
// error, from details.fields and from what was asked for; stoppedAt is the only
// place that decides it.
const (
	GateSwitch     = "switch"     // the Public API, or External Identity, is on
	GatePath       = "path"       // the path and the method exist
	GateCredential = "credential" // key, access token, webhook token, signature, password, session
	GateAddress    = "address"    // the key's addresses
	GateOrigin     = "origin"     // the key's origins
	GateRate       = "rate"       // the rate limit
	GatePermission = "permission" // of the entity type, the endpoint or the system
	GateBody       = "body"       // query parameters and body
	GateFields     = "fields"     // the fields that the user may edit
	GateRecord     = "record"     // ownership, hierarchy, shares and rules of one record
	GateConflict   = "conflict"   // unique values, versions, the state of an account
	GateRun        = "run"        // the component or automation
	GateService    = "service"    // room, time and health of the service itself
)

var gateOfCode = map[fault.Code]string{
	fault.APIDisabled: GateSwitch, fault.ServiceUnavailable: GateSwitch,
	fault.MethodNotAllowed: GatePath,
	fault.Unauthorized:     GateCredential, fault.InvalidCredentials: GateCredential, fault.TokenExpired: GateCredential,
	fault.TokenInvalid: GateCredential, fault.AccountNotActive: GateCredential,
	fault.IPDenied: GateAddress, fault.CORSDenied: GateOrigin,
	fault.RateLimited: GateRate, fault.TooManyRequests: GateRate,
	fault.Validation: GateBody, fault.PayloadTooLarge: GateBody, fault.UnsupportedMediaType: GateBody,
	fault.Conflict: GateConflict, fault.EmailTaken: GateConflict, fault.PreconditionFailed: GateConflict, fault.IdempotencyKeyReused: GateConflict,
	fault.ExecutionError: GateRun, fault.ExecutionTimeout: GateRun,
	fault.Overloaded: GateService, fault.Internal: GateService,
}

// stoppedAt returns the gate at which a request was stopped, or "" for a
// success. answer is the body of the answer; it is read for FORBIDDEN alone.
func stoppedAt(e *Entry, answer []byte) string {
	if e.Status < 400 {
		return ""
	}
	custom := strings.HasPrefix(e.Endpoint, "/custom/")
	switch code := fault.Code(e.Code); {
	case code == fault.NotFound:
		if e.Endpoint == "" || custom {
			return GatePath
		}
		return GateRecord
	case code == fault.Forbidden:
		return forbiddenAt(answer)
	case gateOfCode[code] != "":
		return gateOfCode[code]
	case custom: // a code that fail chose
		return GateRun
	default:
		return GateService
	}
}

// forbiddenAt tells the three kinds of FORBIDDEN apart: fields that the user may
// not edit are in details.fields, a record that they may see and not change is
// named as such, and everything else is a permission.
func forbiddenAt(answer []byte) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Details struct {
				Fields map[string]json.RawMessage `json:"fields"`
			} `json:"details"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(answer, &body); {
	case err != nil:
		return GatePermission
	case len(body.Error.Details.Fields) > 0:
		return GateFields
	case strings.HasSuffix(body.Error.Message, " this record"):
		return GateRecord
	default:
		return GatePermission
	}
}
