package fault

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestEachCodeHasAStatus(t *testing.T) {
	for _, c := range Codes() {
		if s := Status(c); s < 400 || s > 504 {
			t.Errorf("%s: status %d", c, s)
		}
	}
	if len(Codes()) != len(statuses) || !slices.Contains(Codes(), Internal) || Status("NO_CODE") != 500 {
		t.Error("the list of codes is not closed")
	}
}

func TestAnErrorIsCopiedNotChanged(t *testing.T) {
	whole := New(NotFound, "there is no %s", "thing")
	more := whole.With("a", 1).With("b", 2).After(time.Second).Because("a reason")
	if whole.Details != nil || whole.RetryAfter != 0 || whole.Reason != "" {
		t.Errorf("the first was changed: %+v", whole)
	}
	if fmt.Sprint(more.Details) != "map[a:1 b:2]" || more.RetryAfter != time.Second || more.Reason != "a reason" || more.HTTPStatus() != 404 {
		t.Errorf("%+v", more)
	}
	more.Status = 418
	if more.HTTPStatus() != 418 || more.Error() != "NOT_FOUND: there is no thing" {
		t.Errorf("%d %s", more.HTTPStatus(), more)
	}
}

func TestCodesAreFoundInWrappedErrors(t *testing.T) {
	err := fmt.Errorf("outer: %w", New(Conflict, "taken"))
	if CodeOf(err) != Conflict || !errors.Is(err, New(Conflict, "")) || errors.Is(err, New(NotFound, "")) {
		t.Errorf("%v", err)
	}
	if CodeOf(nil) != "" || CodeOf(errors.New("foreign")) != "" {
		t.Error("a foreign error has a code")
	}
	if f := Fields("bad", map[string]string{"name": "is required"}); f.Code != Validation || fmt.Sprint(f.Details["fields"]) != "map[name:is required]" {
		t.Errorf("%+v", f)
	}
}

// Whoever is told OVERLOADED is told when to come back, wherever it was made.
func TestAnOverloadedAlwaysSaysWhenToComeBack(t *testing.T) {
	for _, code := range Codes() {
		want := time.Duration(0)
		if code == Overloaded {
			want = time.Second
		}
		if got := New(code, "no").With("a", 1).RetryAfter; got != want {
			t.Errorf("%s: after %s, want %s", code, got, want)
		}
	}
	if got := New(Overloaded, "no").After(5 * time.Second).RetryAfter; got != 5*time.Second {
		t.Errorf("after %s, want what was asked for", got)
	}
}
