package fault

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCodesAreThoseOfTheContract compares the codes and their statuses with the table
// of contract E1.
func TestCodesAreThoseOfTheContract(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(contract), `<a id="e1"></a>`)
	table, _, _ = strings.Cut(table, `<a id="e2"></a>`)
	documented := map[Code]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([0-9]{3}) \\|").FindAllStringSubmatch(table, -1) {
		documented[Code(row[1])], _ = strconv.Atoi(row[2])
	}
	defined := map[Code]int{}
	for _, c := range Codes() {
		defined[c] = Status(c)
	}
	if !maps.Equal(documented, defined) {
		t.Errorf("E1 lists %v, the package %v", documented, defined)
	}
	if Status("NO_CODE") != 500 {
		t.Error("an unknown code is not 500")
	}
}

// TestErrorsAreCopied checks that With, After and Because do not change the error,
// which may be shared, nor its details.
func TestErrorsAreCopied(t *testing.T) {
	whole := New(NotFound, "there is no %s", "thing")
	one := whole.With("a", 1)
	more := one.With("b", 2).After(time.Second).Because("a reason")
	if whole.Details != nil || whole.RetryAfter != 0 || whole.Reason != "" || len(one.Details) != 1 {
		t.Errorf("the first was changed: %+v, %+v", whole, one)
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

// TestOverloadedHasRetryAfter checks that only OVERLOADED has a RetryAfter by itself.
func TestOverloadedHasRetryAfter(t *testing.T) {
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
		t.Errorf("after %s, want 5s", got)
	}
}
