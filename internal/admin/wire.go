package admin

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/config"
)

// ConfigKind describes a kind of object. Changing are the permissions one of which a
// change needs, Reading those one of which lets read such objects.
type ConfigKind struct {
	Kind     string                     `json:"kind"`
	Section  string                     `json:"section,omitempty"`
	ID       string                     `json:"id,omitempty"`
	Changing []string                   `json:"changing"`
	Reading  []string                   `json:"reading"`
	Members  []config.MemberDescription `json:"members"`
}

// ConfigObject is one object of the configuration. Value has the members of a manifest
// (docs/manifest.md), without secrets.
type ConfigObject struct {
	Kind    string         `json:"kind"`
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Value   jsontext.Value `json:"value"`
}

// ConfigChange is a change that is asked for: edits of single objects, or a manifest.
type ConfigChange struct {
	Edits    []ConfigEdit `json:"edits,omitempty"`
	Manifest string       `json:"manifest,omitempty"`
	// Prune removes what a section of the manifest does not name.
	Prune bool `json:"prune,omitempty"`
	// Variables are the values of the ${NAME}s of the manifest.
	Variables map[string]string `json:"variables,omitempty"`
	// Expected are the changes of the plan that was shown: the change is made if it is
	// these, each at its version, or else refused with CONFLICT. Absent expects nothing.
	Expected *[]ExpectedChange `json:"expected,omitempty"`
}

// ConfigEdit is a change of one object: Value is what it is to be, absent or null removes
// it, or deactivates a user. Against is the version that it was made against, "absent" for
// an object that is to be new.
type ConfigEdit struct {
	Kind     string         `json:"kind"`
	Name     string         `json:"name,omitempty"`
	Value    jsontext.Value `json:"value,omitempty"`
	Against  string         `json:"against,omitempty"`
	Activate bool           `json:"activate,omitempty"`
}

// ExpectedChange names a PlanChange.
type ExpectedChange struct {
	Kind    string `json:"kind"`
	Object  string `json:"object"`
	Version string `json:"version"`
}

// ConfigPlan is what a change would do.
type ConfigPlan struct {
	Changes  []PlanChange `json:"changes"`
	Gone     []string     `json:"gone"` // what objects that the change names lose
	Effect   PlanEffect   `json:"effect"`
	Warnings []string     `json:"warnings"`
}

// PlanChange is one object that a change creates, updates or deletes. Line is that of the
// manifest, 0 for none.
type PlanChange struct {
	Action      string           `json:"action"`
	Kind        string           `json:"kind"`
	Name        string           `json:"name"`
	Object      string           `json:"object"`
	Version     string           `json:"version"`
	Path        string           `json:"path,omitempty"`
	Line        int              `json:"line,omitempty"`
	Before      any              `json:"before"`
	After       any              `json:"after"`
	Differences []PlanDifference `json:"differences"`
}

// PlanDifference is one thing that an update changes.
type PlanDifference struct {
	Path   string `json:"path"`
	Before any    `json:"before"`
	After  any    `json:"after"`
	Text   string `json:"text"`
}

// PlanEffect is what a change does beyond its objects. Hidden counts are not told.
type PlanEffect struct {
	Reindexed []PlanVisit     `json:"reindexed"`
	Fields    []PlanGoneField `json:"fields"`
	Losing    PlanAffected    `json:"losing"`
	Keys      PlanAffected    `json:"keys"`
	Endpoints PlanAffected    `json:"endpoints"`
}

// PlanVisit is an entity type whose records are looked at again.
type PlanVisit struct {
	Entity  string `json:"entity"`
	Records int64  `json:"records"`
	More    bool   `json:"more"`
	Hidden  bool   `json:"hidden"`
}

// PlanGoneField is a field that goes from an object that stays; "" is of users.
type PlanGoneField struct {
	Entity  string `json:"entity"`
	Field   string `json:"field"`
	Holding int64  `json:"holding"`
	Of      int64  `json:"of"`
	Hidden  bool   `json:"hidden"`
}

// PlanAffected are objects that a change touches from outside, and some of their names.
type PlanAffected struct {
	Count int      `json:"count"`
	Names []string `json:"names"`
}

// ConfigApplied is what a change did. Work is the id of the work that goes on with it,
// when it takes long: then nothing has changed yet, and the status is 202.
type ConfigApplied struct {
	Work     string        `json:"work,omitempty"`
	Changes  []AppliedLine `json:"changes"`
	Gone     []string      `json:"gone"`
	Warnings []string      `json:"warnings"`
}

// AppliedLine is one object that a change created, updated or deleted, in words.
type AppliedLine struct {
	Action string `json:"action"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// WorkState is how far the last long change has come.
type WorkState string

// The states: NoWork when there was none for a day, Running, Done, Failed for one that was
// refused, Stopped for one whose server ended: it goes on when it is sent again.
const (
	NoWork  WorkState = "none"
	Running WorkState = "running"
	Done    WorkState = "done"
	Failed  WorkState = "failed"
	Stopped WorkState = "stopped"
)

// Values returns all states.
func (WorkState) Values() []string {
	return []string{string(NoWork), string(Running), string(Done), string(Failed), string(Stopped)}
}

// ConfigWork is the last long change. Percent is of the records that are looked at; Entity
// is "" while owners' roles change. Applied and Error are for who asked for the change.
type ConfigWork struct {
	ID        string         `json:"id,omitempty"`
	State     WorkState      `json:"state"`
	Who       string         `json:"who,omitempty"`
	Mine      bool           `json:"mine"`
	Entity    string         `json:"entity"`
	Percent   int            `json:"percent"`
	Records   *WorkRecords   `json:"records"` // null where the viewer may not know
	StartedAt *time.Time     `json:"startedAt"`
	Applied   *ConfigApplied `json:"applied"`
	Error     *WorkError     `json:"error"`
	// Other is set while a change that was made elsewhere, by a command, is prepared.
	Other bool `json:"other"`
}

// WorkRecords are how many records of a long change were looked at.
type WorkRecords struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// WorkError is the error that a long change ended with.
type WorkError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// ConfigProblem is one mistake of a change that was asked for, in details.problems. Path is
// in what was given: edits[0].parent. Line is of the manifest, or of a text of an edit.
type ConfigProblem struct {
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`
	Reason string `json:"reason"`
	Code   string `json:"code"`
}

// ManifestText is the manifest of the tenant as it stands, without secrets.
type ManifestText struct {
	Text    string `json:"text"`
	Version int64  `json:"version"`
}

// HistoryEntry is one change of the history. Actor is who made it, and ActedAs the user
// they acted as, if any.
type HistoryEntry struct {
	ID          string           `json:"id"`
	At          time.Time        `json:"at"`
	Actor       string           `json:"actor"`
	ActedAs     string           `json:"actedAs,omitempty"`
	Action      string           `json:"action"`
	Kind        string           `json:"kind"`
	Name        string           `json:"name"`
	Before      any              `json:"before"`
	After       any              `json:"after"`
	Differences []PlanDifference `json:"differences"`
}

// EntityLine is an entity type with what hangs on it. Records is null where the viewer
// does not reach all of them.
type EntityLine struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Sharing string   `json:"sharing"`
	Fields  int      `json:"fields"`
	Indexed int      `json:"indexed"`
	Rules   int      `json:"rules"`
	Records *Bounded `json:"records"`
}

// Bounded is a count, or, with More, that there are more than Count.
type Bounded struct {
	Count int64 `json:"count"`
	More  bool  `json:"more"`
}

// UserLine is a user in a list.
type UserLine struct {
	ID             string    `json:"id"`
	Email          string    `json:"email"`
	Name           string    `json:"name"`
	Locale         string    `json:"locale"`
	Type           string    `json:"type"`
	Owner          bool      `json:"owner"`
	Active         bool      `json:"active"`
	Pending        bool      `json:"pending"`
	EmailVerified  bool      `json:"emailVerified"`
	HasPassword    bool      `json:"hasPassword"`
	Role           string    `json:"role"`
	PermissionSets []string  `json:"permissionSets"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// Sent says to whom a mail goes.
type Sent struct {
	To string `json:"to"`
}

// WaitingMail is a mail that the relay has not taken yet; never its text.
type WaitingMail struct {
	ID        string    `json:"id"`
	To        string    `json:"to"`
	Subject   string    `json:"subject"`
	CreatedAt time.Time `json:"createdAt"`
	Tries     int       `json:"tries"`
	NextAt    time.Time `json:"nextAt"`
	Sending   bool      `json:"sending"`
	LastError string    `json:"lastError"`
}

// WaitingMails counts all of the tenant's waiting mails, of which the first are listed.
type WaitingMails struct {
	Count   int     `json:"count"`
	Waiting Bounded `json:"waiting"`
}

// TemplateDraft is a template that is being written.
type TemplateDraft struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// TemplatePreview is a mail made from a template with invented values. Default is set
// where the draft is empty: it is the built-in mail, whose texts are in Draft.
type TemplatePreview struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Subject string         `json:"subject"`
	Text    string         `json:"text"`
	HTML    string         `json:"html"`
	Default bool           `json:"default"`
	Draft   TemplateDraft  `json:"draft"`
	Invalid []TemplateFlaw `json:"invalid"`
}

// TemplateFlaw is why a draft cannot be saved.
type TemplateFlaw struct {
	Member string `json:"member"`
	Reason string `json:"reason"`
}
