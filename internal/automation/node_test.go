package automation

import (
	"os"
	"strings"
	"testing"
)

// TestContractListsEveryTypeOfNode with its members (contract F2).
func TestContractListsEveryTypeOfNode(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range nodeTypes {
		_, row, found := strings.Cut(string(contract), "| `"+kind.name+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("F2 does not list %s", kind.name)
		}
		for _, member := range kind.members {
			if !strings.Contains(row, "`"+member+"`") {
				t.Errorf("F2 does not list %s of %s", member, kind.name)
			}
		}
	}
	if got := readableTypes(); got != "record.* and component" {
		t.Errorf("paths read the results of %s", got)
	}
}
