package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"gatehouse/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTheKindsAreDescribed holds every kind and member that can be given against
// testdata/kinds.json. A change of it is a change of what authors may write.
func TestTheKindsAreDescribed(t *testing.T) {
	is, err := json.MarshalIndent(config.Describe(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	is = append(is, '\n')
	const golden = "testdata/kinds.json"
	if *update {
		if err := os.WriteFile(golden, is, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(is) != string(want) {
		t.Errorf("%s differs (%v): go test -update writes it\n%s", golden, err, is)
	}
}

// TestEachMemberIsDescribed: a member has a type and a line of documentation, and
// every kind of object that can be edited is there.
func TestEachMemberIsDescribed(t *testing.T) {
	described := map[string]bool{}
	var each func(path string, members []config.MemberDescription)
	each = func(path string, members []config.MemberDescription) {
		for _, m := range members {
			if m.Type == "" || m.Doc == "" || m.Type == config.ChoiceMember && len(m.Values) == 0 || m.Type == config.ObjectMember && len(m.Members) == 0 {
				t.Errorf("%s.%s lacks something: %+v", path, m.Name, m)
			}
			each(path+"."+m.Name, m.Members)
		}
	}
	for _, k := range config.Describe() {
		described[k.Kind] = true
		each(k.Kind, k.Members)
	}
	for _, name := range config.Kinds() {
		if !described[name] {
			t.Errorf("%s is not described", name)
		}
	}
}
