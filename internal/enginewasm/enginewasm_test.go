package enginewasm_test

import (
	"testing"

	"gatehouse/internal/enginewasm"
)

func TestBinary(t *testing.T) {
	if b, err := enginewasm.Binary(); err != nil || len(b) == 0 {
		t.Fatal(err)
	}
}
