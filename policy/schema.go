package policy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ringlimit/ringlimit/bucket"
)

// Schema returns the JSON Schema (draft 2020-12) of a policy file. It is what
// docs/policy.schema.json holds (go test ./policy -run Schema -write). Parse is the
// judge of what spans several fields; and it takes a number where a text is meant.
func Schema() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(fileSchema()); err != nil {
		panic(fmt.Sprintf("encode schema: %v", err)) // strings, numbers and maps of them: cannot fail
	}
	return b.Bytes()
}

// object is a JSON object; encoding sorts its keys.
type object map[string]any

func fileSchema() object {
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "https://github.com/ringlimit/ringlimit/docs/policy.schema.json",
		"title":       "ringlimit policy file",
		"description": "The limits of a ringlimit cluster.",
		"type":        "object", "additionalProperties": false, "required": []string{"policies"},
		"properties": object{
			"home": describe("Where a bucket lives: names whose values share a slot. Fixed when the cluster is made. Default [tenant].",
				object{"oneOf": []object{name(), {"type": "array", "items": name(), "minItems": 1, "maxItems": maxNames, "uniqueItems": true}}}),
			"no_match":      describe("What happens to a request that no policy matches.", enum(actions)),
			"route_classes": describe("Names for sets of routes: the attribute route_class is the first that fits.", classesSchema()),
			"policies": describe("Every policy that matches a request applies to it.",
				object{"type": "array", "maxItems": MaxPolicies, "items": object{"$ref": "#/$defs/policy"}}),
		},
		"$defs": object{"policy": policySchema()},
	}
}

func policySchema() object {
	return object{
		"type": "object", "additionalProperties": false, "required": []string{"id", "scope"},
		"properties": object{
			"id": describe("Unique in the file.", ascii(maxID)),
			"match": describe("Conditions that must all hold: a value, a prefix* or *. {} is any request.", object{
				"type": "object", "maxProperties": maxNames, "propertyNames": name(),
				"additionalProperties": object{"type": []string{"string", "number", "boolean"}, "minLength": 1, "maxLength": MaxRoute, "pattern": `^[^*]*\*?$`},
			}),
			"family":          describe("Of the policies that share a family, only the most specific applies. Default: the id.", ascii(maxID)),
			"scope":           describe("What is counted together. [] counts everything together.", namesSchema()),
			"algorithm":       describe("How it counts. Default token_bucket.", enum(algorithmNames)),
			"amount":          describe("Tokens per window; permits of a concurrency limit. 0 denies all.", integer(0)),
			"window":          describe("A Go duration, 1ms to 8784h; the time limit of a permit.", object{"type": "string", "pattern": durationPattern}),
			"burst":           describe("Capacity of a token_bucket or leaky_bucket. Default: amount.", integer(0)),
			"cost":            describe("Tokens for each unit of the request's cost; or by route class.", costSchema()),
			"on_unavailable":  describe("What a caller does when the limiter is out of reach.", unavailableSchema()),
			"on_state_loss":   describe("How full buckets are once a group has lost its state for good.", enum(stateLosses)),
			"mode":            describe("shadow counts and never denies; disabled does nothing.", enum(modes)),
			"consistency":     describe("leased lets clients take tokens in advance and hold them for a second; for token_bucket and fixed_window.", enum(consistencies)),
			"rate_per_second": describe("Another way to give amount and window.", integer(0)),
			"limit_count":     describe("Another way to give amount.", integer(0)),
			"window_seconds":  describe("Another way to give window.", object{"type": "integer", "minimum": 1, "maximum": bucket.MaxWindow / int64(1e9)}),
		},
		"oneOf": []object{
			{"required": []string{"amount", "window"}, "not": anyOf("rate_per_second", "limit_count", "window_seconds")},
			{"required": []string{"rate_per_second"}, "not": anyOf("amount", "window", "limit_count", "window_seconds")},
			{"required": []string{"limit_count", "window_seconds"}, "not": anyOf("amount", "window", "rate_per_second")},
		},
		"if":   object{"properties": object{"algorithm": object{"enum": withoutBurst()}}, "required": []string{"algorithm"}},
		"then": object{"properties": object{"burst": false}},
	}
}

// durationPattern is a Go duration without a sign.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`

func withoutBurst() (names []string) {
	for _, n := range algorithmNames {
		if a, _ := bucket.ParseAlgorithm(n); !hasBurst(a) {
			names = append(names, n)
		}
	}
	return names
}

func classesSchema() object {
	route := object{"type": "string", "minLength": 1, "maxLength": MaxRoute, "pattern": `^[^*?#]*\*?$`}
	return object{"type": "array", "maxItems": maxClasses, "items": object{
		"type": "object", "additionalProperties": false, "required": []string{"name", "routes"},
		"properties": object{
			"name":   object{"type": "string", "minLength": 1, "maxLength": maxID, "pattern": `^[ -)+-~]*$`, "not": object{"const": defaultClass}},
			"routes": object{"oneOf": []object{route, {"type": "array", "items": route, "minItems": 1, "maxItems": maxClassRoutes}}},
		},
	}}
}

func costSchema() object {
	return object{"oneOf": []object{
		integer(1),
		{"type": "object", "propertyNames": ascii(maxID), "additionalProperties": integer(1)},
	}}
}

func unavailableSchema() object {
	mode := enum(failureModes)
	duration := object{"type": "string", "pattern": durationPattern}
	return object{"oneOf": []object{mode, {
		"type": "object", "additionalProperties": false,
		"properties": object{
			"mode":  mode,
			"after": describe("How long to wait for an answer; deadline: until the caller's own. Default 50ms.", object{"oneOf": []object{{"const": "deadline"}, duration}}),
			"for":   describe("How long it stays open.", duration),
			"then":  describe("What comes after that.", enum([]string{Local.String(), Closed.String()})),
		},
	}}}
}

func namesSchema() object {
	return object{"oneOf": []object{name(), {"type": "array", "items": name(), "maxItems": maxNames, "uniqueItems": true}}}
}

// name is the name of an attribute or principal type.
func name() object {
	n := ascii(maxNameBytes)
	n["not"] = object{"enum": short}
	return n
}

func ascii(most int) object {
	return object{"type": "string", "minLength": 1, "maxLength": most, "pattern": `^[ -~]*$`}
}

func integer(least int) object {
	return object{"type": "integer", "minimum": least, "maximum": bucket.MaxAmount}
}

func enum(values []string) object { return object{"enum": values} }

func describe(text string, schema object) object {
	schema["description"] = text
	return schema
}

func anyOf(keys ...string) object {
	var out []object
	for _, k := range keys {
		out = append(out, object{"required": []string{k}})
	}
	return object{"anyOf": out}
}
