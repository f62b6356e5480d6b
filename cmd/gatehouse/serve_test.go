package main

import (
	"bytes"
	"testing"
	"time"
)

// The drain delay is 2 s where /readyz can be seen, and 0 where it cannot.
func TestDrainDelay(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  string
		want time.Duration
		bad  bool
	}{
		{want: 0},
		{args: []string{"--ops-listen", "127.0.0.1:0"}, want: 2 * time.Second},
		{args: []string{"--drain-delay", "7s"}, want: 7 * time.Second},
		{args: []string{"--ops-listen", "127.0.0.1:0", "--drain-delay", "0s"}, want: 0},
		{args: []string{"--ops-listen", "127.0.0.1:0"}, env: "5s", want: 5 * time.Second},
		{args: []string{"--drain-delay", "-1s"}, bad: true},
		{args: []string{"--drain-delay", "11m"}, bad: true},
	} {
		e := &env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(name string) string {
			if name == "GATEHOUSE_DRAIN_DELAY" {
				return c.env
			}
			return ""
		}}
		f := e.flags(command{name: "serve"})
		s := newServeFlags(f)
		if err := f.parse(c.args); err != nil {
			t.Fatal(err)
		}
		got, err := s.delay()
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%v, environment %q: %v, %v; want %v", c.args, c.env, got, err, c.want)
		}
	}
}
