package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthTimeout is how long a server may take to say that it is alive.
const healthTimeout = 3 * time.Second

// healthCommand asks the server of --ops-listen whether it is alive. It is for images
// without a shell, whose health check can only run the program itself.
func healthCommand(f *flags) action {
	ops := f.required("ops-listen", "address of /healthz")
	return func(ctx context.Context) error {
		host, port, err := net.SplitHostPort(*ops)
		if err != nil {
			return f.wrong("--ops-listen: %s", err)
		}
		if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() { // it listens everywhere, here too
			host = "127.0.0.1"
		}
		ctx, cancel := context.WithTimeout(ctx, healthTimeout)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = res.Body.Close() // its status is the answer
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("/healthz says %d", res.StatusCode)
		}
		return nil
	}
}
