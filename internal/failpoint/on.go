//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// step is a point, and how many times it must still be reached.
type step struct {
	point string
	left  int
}

var (
	mu    sync.Mutex
	steps = parse(os.Getenv("GATEHOUSE_KILL_AT"))
)

func parse(text string) []step {
	if text == "" {
		return nil
	}
	var list []step
	for _, part := range strings.Split(text, ",") {
		point, times, several := strings.Cut(part, "#")
		s := step{point, 1}
		if several {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 {
				panic("GATEHOUSE_KILL_AT: " + part + ": expected name or name#n")
			}
			s.left = n
		}
		list = append(list, s)
	}
	return list
}

// At kills the process, as kill -9 does, when point is the last of the steps.
func At(point string) {
	mu.Lock()
	defer mu.Unlock()
	if !due(point) {
		return
	}
	fmt.Fprintln(os.Stderr, "killed at "+point)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // mu stays locked: no other goroutine passes a point either
}

// due counts that a point was reached. It reports whether that was the last of the
// steps.
func due(point string) bool {
	if len(steps) == 0 || steps[0].point != point {
		return false
	}
	if steps[0].left--; steps[0].left > 0 {
		return false
	}
	steps = steps[1:]
	return len(steps) == 0
}
