package audit

import (
	"fmt"
	"slices"
	"testing"
)

// Contract G5 from the other side: for each class and each setting of the
// toggles, the statuses that are kept.
func TestWhatIsPersisted(t *testing.T) {
	statuses := func(keep func(int) bool) (list []int) {
		for s := 100; s <= 599; s++ {
			if keep(s) {
				list = append(list, s)
			}
		}
		return list
	}
	var (
		none      = []int(nil)
		early     = []int{401, 403, 429, 503}
		all       = statuses(func(int) bool { return true })
		failures  = statuses(func(s int) bool { return s >= 400 })
		successes = statuses(func(s int) bool { return s < 400 })
	)
	for _, c := range []struct {
		class            Class
		tenant, endpoint bool
		want             []int
	}{
		{Standard, false, false, none},
		{Standard, false, true, none},
		{Standard, true, false, all},
		{Standard, true, true, all},
		{Custom, false, false, none},
		{Custom, false, true, successes},
		{Custom, true, false, failures},
		{Custom, true, true, all},
		{Auth, false, false, none},
		{Auth, false, true, none},
		{Auth, true, false, early},
		{Auth, true, true, early},
		{Other, false, false, none},
		{Other, false, true, none},
		{Other, true, false, early},
		{Other, true, true, early},
		{"", true, true, early},
		{"", false, true, none},
	} {
		t.Run(fmt.Sprintf("%s tenant=%v endpoint=%v", c.class, c.tenant, c.endpoint), func(t *testing.T) {
			got := statuses(func(s int) bool { return Persisted(c.class, s, c.tenant, c.endpoint) })
			if !slices.Equal(got, c.want) {
				t.Errorf("kept %v, want %v", got, c.want)
			}
		})
	}
}
