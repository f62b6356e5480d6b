package background

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{First: 20 * time.Millisecond, Last: time.Second}
		pauses := func(n int) (list []time.Duration) {
			for range n {
				begun := time.Now()
				if err := b.Wait(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				list = append(list, time.Since(begun))
			}
			return list
		}
		if got := fmt.Sprint(pauses(8)); got != "[20ms 40ms 80ms 160ms 320ms 640ms 1s 1s]" {
			t.Error(got)
		}
		b.Reset()
		if got := fmt.Sprint(pauses(2)); got != "[20ms 40ms]" {
			t.Errorf("after Reset: %s", got)
		}
	})
}

func TestAPauseEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, woken <-chan struct{}) (time.Duration, error) {
			b := Backoff{First: time.Hour, Last: time.Hour}
			begun := time.Now()
			err := b.Wait(ctx, woken)
			return time.Since(begun), err
		}
		woken := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(woken) })
		if took, err := wait(t.Context(), woken); took != time.Minute || err != nil {
			t.Errorf("woken after a minute: %v, %v", took, err)
		}
		if took, err := wait(t.Context(), woken); took != wokenAfter || err != nil {
			t.Errorf("woken at once: %v, %v", took, err)
		}
		for _, after := range []time.Duration{time.Millisecond, time.Minute} { // before and after wokenAfter
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if took, err := wait(ctx, nil); took != after || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended after %v: %v, %v", after, took, err)
			}
			cancel()
		}
	})
}
