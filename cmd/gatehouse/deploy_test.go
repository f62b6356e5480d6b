package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// Each variable that the files in deploy/ set is a flag of serve, and each value is one
// that the flag takes.
func TestDeployNamesFlags(t *testing.T) {
	e := &env{stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
	f := e.flags(command{name: "serve"})
	newServeFlags(f)
	found := 0
	for _, file := range []string{"Dockerfile", "systemd/gatehouse.service", "kubernetes/gatehouse.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, variable := range regexp.MustCompile(`GATEHOUSE_[A-Z_]+`).FindAllString(string(text), -1) {
			found++
			name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "GATEHOUSE_"), "_", "-"))
			if f.Lookup(name) == nil && variable != "GATEHOUSE_MASTER_KEY" {
				t.Errorf("%s: %s is no flag of serve", file, variable)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d variables were found", found)
	}
}

// In the example for Kubernetes the probes ask for paths of the operator's port, and what
// ends a pod waits for longer than the server may take to stop.
func TestDeployKubernetes(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kubernetes/gatehouse.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}
	type deployment struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Env []struct {
							Name, Value string
							ValueFrom   any `yaml:"valueFrom"`
						}
						Ports []struct {
							Name string
							Port int `yaml:"containerPort"`
						}
						Startup   probe `yaml:"startupProbe"`
						Readiness probe `yaml:"readinessProbe"`
						Liveness  probe `yaml:"livenessProbe"`
					}
				}
			}
		}
	}
	var kinds []string
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var d deployment
		if err := documents.Decode(&d); err == io.EOF { //nolint:errorlint // yaml does not wrap it
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, d.Kind)
		if d.Kind != "Deployment" {
			continue
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if c.Startup.HTTPGet.Path != "/readyz" || c.Readiness.HTTPGet.Path != "/readyz" || c.Liveness.HTTPGet.Path != "/healthz" {
			t.Errorf("the probes ask for %v, %v, %v", c.Startup, c.Readiness, c.Liveness)
		}
		for _, p := range []probe{c.Startup, c.Readiness, c.Liveness} {
			if p.HTTPGet.Port != "ops" {
				t.Errorf("a probe asks the port %q", p.HTTPGet.Port)
			}
		}
		values := map[string]string{}
		for _, v := range c.Env {
			values[v.Name] = v.Value
		}
		if len(c.Ports) != 2 || !strings.HasSuffix(values["GATEHOUSE_LISTEN"], ":8080") || c.Ports[0].Port != 8080 ||
			!strings.HasSuffix(values["GATEHOUSE_OPS_LISTEN"], ":9090") || c.Ports[1].Port != 9090 || c.Ports[1].Name != "ops" {
			t.Errorf("ports %v do not fit %v", c.Ports, values)
		}
		delay, err := time.ParseDuration(values["GATEHOUSE_DRAIN_DELAY"])
		if err != nil || time.Duration(pod.Grace)*time.Second < delay+42*time.Second {
			t.Errorf("a grace of %d s does not fit a drain delay of %v: %v", pod.Grace, delay, err)
		}
	}
	if !slices.Equal(kinds, []string{"Deployment", "Service", "PodDisruptionBudget"}) {
		t.Errorf("the file has %v", kinds)
	}
}
