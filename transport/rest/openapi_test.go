package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ringlimit/ringlimit/transport/rest"
)

const documentFile = "../../docs/openapi.yaml"

// document is docs/openapi.yaml, and what of it the cases have shown.
type document struct {
	t        *testing.T
	root     map[string]any
	compiler *jsonschema.Compiler
	seen     map[string]bool // what was exercised, by its place in the document
}

func readDocument(t *testing.T) *document {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	var in any
	if err := yaml.UnmarshalWithOptions(text, &in, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	d := &document{t: t, root: root.(map[string]any), compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows a path in the document, and references on the way; place is where it ended.
func (d *document) at(path ...string) (value map[string]any, place string) {
	value = d.root
	for _, name := range path {
		next, _ := value[name].(map[string]any)
		place += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if next == nil {
			return nil, place
		}
		value, place = d.resolve(next, place)
	}
	return value, place
}

func (d *document) resolve(value map[string]any, place string) (map[string]any, string) {
	ref, ok := value["$ref"].(string)
	if !ok {
		return value, place
	}
	out, place := d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	if out == nil {
		d.t.Fatalf("%s leads nowhere", ref)
	}
	return out, place
}

// operations are all "METHOD path" of the document.
func (d *document) operations() (out []string) {
	paths, _ := d.at("paths")
	for path := range paths {
		methods, _ := d.at("paths", path)
		for method := range methods {
			if method != "parameters" {
				out = append(out, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(out)
	return out
}

// validate holds a value to the schema at a place, and notes the properties it has.
func (d *document) validate(name, place string, value any) {
	d.t.Helper()
	schema, err := d.compiler.Compile("openapi.json#" + place)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		d.t.Errorf("%s: %v", name, err)
		return
	}
	d.mark(place, value)
}

func (d *document) lookup(place string) (map[string]any, string) {
	path := strings.Split(strings.TrimPrefix(place, "/"), "/")
	for i := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
	}
	return d.at(path...)
}

// mark notes which properties a value shows, in a schema that it fits.
func (d *document) mark(place string, value any) {
	schema, place := d.lookup(place)
	for i := range asList(schema["oneOf"]) {
		branch := fmt.Sprintf("%s/oneOf/%d", place, i)
		if s, err := d.compiler.Compile("openapi.json#" + branch); err == nil && s.Validate(value) == nil {
			d.markBranch(asList(schema["oneOf"])[i], value)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, v := range value {
			if _, ok := properties[name]; ok {
				d.seen[place+"/properties/"+name] = true
				d.mark(place+"/properties/"+name, v)
			}
		}
	case []any:
		for _, v := range value {
			if _, ok := schema["items"]; ok {
				d.mark(place+"/items", v)
			}
		}
	}
}

// markBranch is mark for an element of oneOf, which is a reference or the null type.
func (d *document) markBranch(branch, value any) {
	if ref, ok := branch.(map[string]any)["$ref"].(string); ok {
		d.mark(strings.TrimPrefix(ref, "#"), value)
	}
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// properties are the places of all properties that a schema has, within it too.
func (d *document) properties(place string, into map[string]bool) {
	schema, place := d.lookup(place)
	if schema == nil || into["walked "+place] {
		return
	}
	into["walked "+place] = true
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		into[place+"/properties/"+name] = true
		d.properties(place+"/properties/"+name, into)
	}
	if _, ok := schema["items"]; ok {
		d.properties(place+"/items", into)
	}
	for _, branch := range asList(schema["oneOf"]) {
		if ref, ok := branch.(map[string]any)["$ref"].(string); ok {
			d.properties(strings.TrimPrefix(ref, "#"), into)
		}
	}
}

// check holds one exchange to the document.
func (d *document) check(name, method, path, body string, r *http.Request, w *httptest.ResponseRecorder) {
	t := d.t
	t.Helper()
	op, place := d.at("paths", path, strings.ToLower(method))
	if op == nil {
		t.Errorf("%s: %s %s is not in the document", name, method, path)
		return
	}
	status := fmt.Sprint(w.Code)
	response, where := d.at("paths", path, strings.ToLower(method), "responses", status)
	if response == nil {
		t.Errorf("%s: %s %s has no %s in the document: %s", name, method, path, status, w.Body)
		return
	}
	d.seen[place+"/responses/"+status] = true
	d.checkHeaders(name, response, where, w.Header())
	d.checkBody(name, response, where, w)
	if w.Code < 300 || w.Code == http.StatusTooManyRequests {
		d.checkRequest(name, op, place, body)
	}
	d.markParameters(path, op, place, r)
}

// checkRequest holds what was accepted to what the document says is.
func (d *document) checkRequest(name string, op map[string]any, place, body string) {
	d.t.Helper()
	_, wanted := op["requestBody"]
	if wanted != (body != "") {
		d.t.Errorf("%s: accepted with body %q", name, body)
	}
	if body == "" {
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	d.validate(name+": the request", place+"/requestBody/content/application~1json/schema", value)
}

func (d *document) checkHeaders(name string, response map[string]any, where string, got http.Header) {
	d.t.Helper()
	headers, _ := response["headers"].(map[string]any)
	known := map[string]bool{"Content-Type": true, "Content-Length": true, "X-Request-Id": true}
	for header := range headers {
		known[http.CanonicalHeaderKey(header)] = true
		h, place := d.lookup(where + "/headers/" + header)
		value, ok := got[http.CanonicalHeaderKey(header)]
		if !ok {
			if h["required"] == true {
				d.t.Errorf("%s: no %s", name, header)
			}
			continue
		}
		d.seen[where+"/headers/"+header] = true
		d.validate(name+": "+header, place+"/schema", value[0])
	}
	for header := range got {
		if !known[header] {
			d.t.Errorf("%s: %s is not in the document", name, header)
		}
	}
}

func (d *document) checkBody(name string, response map[string]any, where string, w *httptest.ResponseRecorder) {
	d.t.Helper()
	content, _ := response["content"].(map[string]any)
	if content == nil {
		return
	}
	kind := w.Header().Get("Content-Type")
	if content[kind] == nil {
		d.t.Errorf("%s: content type %q, want %v", name, kind, slices.Collect(maps.Keys(content)))
		return
	}
	if strings.HasPrefix(kind, "text/") {
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(w.Body.String()))
	if err != nil {
		d.t.Errorf("%s: %v in %s", name, err, w.Body)
		return
	}
	d.validate(name, where+"/content/"+strings.ReplaceAll(kind, "/", "~1")+"/schema", value)
}

// markParameters notes those that the request had.
func (d *document) markParameters(path string, op map[string]any, place string, r *http.Request) {
	for i, p := range asList(op["parameters"]) {
		parameter, _ := d.resolve(p.(map[string]any), "")
		name := parameter["name"].(string)
		if parameter["in"] == "header" && len(r.Header[http.CanonicalHeaderKey(name)]) > 0 || parameter["in"] == "query" && r.URL.Query().Has(name) {
			d.seen[fmt.Sprintf("%s/parameters/%d", place, i)] = true
		}
	}
}

// everything are the places that some case must show.
func (d *document) everything() map[string]bool {
	all := map[string]bool{}
	for _, name := range d.operations() {
		method, path, _ := strings.Cut(name, " ")
		method = strings.ToLower(method)
		op, place := d.at("paths", path, method)
		for i := range asList(op["parameters"]) {
			all[fmt.Sprintf("%s/parameters/%d", place, i)] = true
		}
		if _, ok := op["requestBody"]; ok {
			d.properties(place+"/requestBody/content/application~1json/schema", all)
		}
		for status := range op["responses"].(map[string]any) {
			all[place+"/responses/"+status] = true
			response, where := d.at("paths", path, method, "responses", status)
			headers, _ := response["headers"].(map[string]any)
			for header := range headers {
				all[where+"/headers/"+header] = true
			}
			content, _ := response["content"].(map[string]any)
			for kind := range content {
				d.properties(where+"/content/"+strings.ReplaceAll(kind, "/", "~1")+"/schema", all)
			}
		}
	}
	for place := range all {
		if strings.HasPrefix(place, "walked ") {
			delete(all, place)
		}
	}
	return all
}

// TestDocumentIsTheServer: each case is held to docs/openapi.yaml, and all that stands
// there, operations, statuses, headers, parameters and properties, is shown by a case.
func TestDocumentIsTheServer(t *testing.T) {
	d := readDocument(t)
	for _, c := range cases() {
		f := newFake()
		if c.with != nil {
			c.with(f)
		}
		w := httptest.NewRecorder()
		r := request(c.method, c.target(), c.body, c.headers...)
		if c.slow {
			r.Body = io.NopCloser(iotest.ErrReader(os.ErrDeadlineExceeded))
		}
		f.handler(io.Discard).ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.status, w.Body)
			continue
		}
		d.check(c.name, c.method, c.path, c.body, r, w)
	}
	var missing []string
	for place := range d.everything() {
		if !d.seen[place] {
			missing = append(missing, place)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no case shows:\n%s", strings.Join(missing, "\n"))
	}
}

// TestDocumentHasEveryRoute, and no other.
func TestDocumentHasEveryRoute(t *testing.T) {
	want := rest.Routes()
	slices.Sort(want)
	if d := cmp.Diff(want, readDocument(t).operations()); d != "" {
		t.Error(d)
	}
}
