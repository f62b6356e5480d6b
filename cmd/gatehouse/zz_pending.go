package main

// Temporary: each stub goes when the real command appears.

import (
	"context"
	"errors"
)

var errPending = errors.New("this command is not there yet")

func demoCommand(_ context.Context, e *env, args []string) error {
	if err := e.flags("demo").Parse(args); err != nil {
		return err
	}
	return errPending
}
