// Package custom holds what a tenant defines itself: logic components,
// automations, and the custom endpoints that call them (contract C1, D9). It
// stores definitions and checks that they hold together; package endpoint runs
// them.
package custom

import (
	"regexp"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

// ContextKind says under which user's permissions a component or automation runs.
type ContextKind string

// The kinds of execution context.
const (
	Caller       ContextKind = "caller" // whoever the endpoint runs as
	System       ContextKind = "system" // every record of the tenant, in the caller's name
	SpecificUser ContextKind = "specific_user"
)

// Context is a declared execution context; it takes precedence over the
// endpoint's run_as (contract X2).
type Context struct {
	Kind   ContextKind `json:"kind"`
	UserID string      `json:"user_id,omitempty"` // of SpecificUser
}

// Component is a logic component as its author declared it.
type Component struct {
	Name      string               `json:"-"`
	Inputs    []inputs.Declaration `json:"inputs"`
	Outputs   []inputs.Declaration `json:"outputs"` // documentation
	Context   Context              `json:"execution_context"`
	TimeoutMS int                  `json:"timeout_ms"`
	// Config is a JSON object, what the component is configured with; empty for none.
	Config jsontext.Value `json:"config,omitempty"`
	// Imports are the modules that the component uses, directly or by another, sorted.
	Imports []string `json:"imports,omitempty"`
	Source  string   `json:"-"`
	// Secrets has the component's secrets by name, each sealed under
	// ComponentSecretPurpose.
	Secrets map[string]string `json:"-"`
}

// Timeout is what a run of the component may take.
func (c *Component) Timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }

// DefaultTimeoutMS and MaxTimeoutMS bound a component's run (contract X6).
const (
	DefaultTimeoutMS = 5_000
	MaxTimeoutMS     = 30_000
)

// Module is a source that logic components share.
type Module struct {
	Name string `json:"-"`
	// Imports are the modules that the module uses, directly or by another, sorted.
	Imports []string `json:"imports,omitempty"`
	Source  string   `json:"-"`
}

// Automation is a flow as its author declared it.
type Automation struct {
	Name    string  `json:"-"`
	Context Context `json:"execution_context"`
	// Flow is the definition that automation.Decode takes: name, input_schema,
	// outputs and nodes.
	Flow jsontext.Value `json:"flow"`
}

// Auth says who may call an endpoint.
type Auth string

// The three ways to call.
const (
	APIKey Auth = "api_key"
	Token  Auth = "token"
	Signed Auth = "signed"
)

// Reply says what a webhook answers: what its target returned, or only a receipt.
type Reply string

// The two reply modes.
const (
	Result  Reply = "result"
	Receipt Reply = "receipt"
)

// TargetKind tells the two kinds of target apart.
type TargetKind string

// The kinds of target.
const (
	ToComponent  TargetKind = "component"
	ToAutomation TargetKind = "automation"
)

// Target is what an endpoint runs.
type Target struct {
	Kind TargetKind `json:"kind"`
	Name string     `json:"name"`
}

// Endpoint is a custom endpoint as the tenant's admin defined it.
type Endpoint struct {
	Slug               string `json:"-"`
	Target             Target `json:"target"`
	Auth               Auth   `json:"auth"`
	Reply              Reply  `json:"reply"`
	RunAs              string `json:"run_as"`     // a user's id, "" for none
	DefinedBy          string `json:"defined_by"` // the id of the user that a webhook runs as by default
	LogRequests        bool   `json:"log_requests"`
	ExternalUsers      bool   `json:"external_users"`
	RateLimitPerMinute int    `json:"rate_limit_per_minute"` // of a webhook
	MaxBodyBytes       int    `json:"max_body_bytes"`
	Verifier           string `json:"verifier"`            // a component's name; signed mode
	AllowGet           bool   `json:"allow_get,omitempty"` // the verifier may answer GET; signed mode

	// SealedSecret and SealedPrevious are the webhook's shared secrets, sealed
	// under SecretPurpose; "" for none.
	SealedSecret   string `json:"-"`
	SealedPrevious string `json:"-"`
	// TokenPrefix is the first characters of the webhook's token, "" before
	// one was made.
	TokenPrefix string `json:"-"`
}

// SecretPurpose is what webhook secrets are sealed for, ComponentSecretPurpose what
// those of components are.
const (
	SecretPurpose          = "webhook secret"
	ComponentSecretPurpose = "component secret"
)

// The defaults of an endpoint (contract C1).
const (
	DefaultRateLimit    = 1000
	DefaultMaxBodyBytes = 1 << 20
	MaxBodyBytes        = 10 << 20
)

// MinSecret is the length of a webhook secret below which apply warns.
const MinSecret = 16

var (
	slugRule       = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,99}$`)
	nameRule       = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	secretNameRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// ValidSlug reports whether s can be an endpoint's last path segment: lower
// case letters, digits, - and _, at most 100.
func ValidSlug(s string) bool { return slugRule.MatchString(s) }

// ValidName reports whether s can name a component, module or automation:
// snake_case, at most 63 characters.
func ValidName(s string) bool { return nameRule.MatchString(s) }

// ValidSecretName reports whether s can name a component's secret: letters, digits
// and _, at most 63, the first no digit.
func ValidSecretName(s string) bool { return secretNameRule.MatchString(s) }

// Definitions is everything that a tenant defined.
type Definitions struct {
	Modules     map[string]*Module
	Components  map[string]*Component
	Automations map[string]*Automation
	Endpoints   map[string]*Endpoint // by slug

	digests sync.Map // of components, by *Component
}

// ModuleSources returns the sources of all modules, by name.
func (d *Definitions) ModuleSources() map[string]string {
	sources := make(map[string]string, len(d.Modules))
	for name, m := range d.Modules {
		sources[name] = m.Source
	}
	return sources
}
