package main

// Temporary: each stub goes when the real command appears.

import (
	"context"
	"errors"
)

var errPending = errors.New("this command is not there yet")

func demoCommand(context.Context, *env, []string) error  { return errPending }
func auditCommand(context.Context, *env, []string) error { return errPending }
