package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// texts files things under exact texts and under prefixes.
type texts[T any] struct {
	exact  map[string]T
	prefix []prefixes[T] // by length
}

// prefixes are the filed prefixes of one length.
type prefixes[T any] struct {
	length int
	texts  map[string]T
}

// under returns where a text or prefix is filed, making it if need be.
func (x *texts[T]) under(text string, prefix bool) map[string]T {
	if !prefix {
		if x.exact == nil {
			x.exact = map[string]T{}
		}
		return x.exact
	}
	i := 0
	for i < len(x.prefix) && x.prefix[i].length < len(text) {
		i++
	}
	if i == len(x.prefix) || x.prefix[i].length != len(text) {
		x.prefix = append(x.prefix, prefixes[T]{})
		copy(x.prefix[i+1:], x.prefix[i:])
		x.prefix[i] = prefixes[T]{len(text), map[string]T{}}
	}
	return x.prefix[i].texts
}

// classifier finds the class of a route.
type classifier struct {
	classes []RouteClass
	routes  texts[int32] // the first class that a text is listed in
}

func newClassifier(classes []RouteClass) *classifier {
	c := &classifier{classes: classes}
	for i := range classes {
		for _, r := range classes[i].Routes {
			x := Condition{"route", r}.parts()
			filed := c.routes.under(x.text, x.prefix)
			if _, ok := filed[x.text]; !ok {
				filed[x.text] = int32(i)
			}
		}
	}
	return c
}

// class returns the name of the first class that a route fits, "" if none does.
func (c *classifier) class(route string) string {
	if len(c.classes) == 0 || route == "" {
		return ""
	}
	best := int32(len(c.classes))
	if i, ok := c.routes.exact[route]; ok {
		best = i
	}
	for i := range c.routes.prefix {
		p := &c.routes.prefix[i]
		if p.length > len(route) {
			break
		}
		if i, ok := p.texts[route[:p.length]]; ok {
			best = min(best, i)
		}
	}
	if int(best) == len(c.classes) {
		return ""
	}
	return c.classes[best].Name
}

// The bounds of route classes.
const (
	maxClasses     = 256
	maxClassRoutes = 256
)

// checkClasses judges the route classes of a set.
func checkClasses(classes []RouteClass) error {
	if len(classes) > maxClasses {
		return invalid("route_classes", "%d of them, want at most %d", len(classes), maxClasses)
	}
	for i, c := range classes {
		path := fmt.Sprintf("route_classes[%d]", i)
		switch known := slices.IndexFunc(classes[:i], func(o RouteClass) bool { return o.Name == c.Name }); {
		case checkID(c.Name) != nil || strings.Contains(c.Name, "*"):
			return invalid(path+".name", "%q, want 1 … %d bytes of printable ASCII without *", c.Name, maxID)
		case c.Name == defaultClass:
			return invalid(path+".name", "%q, want another name: in a cost it means every other class", c.Name)
		case known >= 0:
			return invalid(path+".name", "%q is the name of route_classes[%d] too, want distinct names", c.Name, known)
		case len(c.Routes) == 0 || len(c.Routes) > maxClassRoutes:
			return invalid(path+".routes", "%d of them, want 1 … %d", len(c.Routes), maxClassRoutes)
		}
		for j, r := range c.Routes {
			if err := checkValue(Condition{"route", r}); err != nil {
				return invalid(fmt.Sprintf("%s.routes[%d]", path, j), "%v", err)
			}
		}
	}
	return nil
}

// defaultClass stands in a cost for every class that is not named, and for none.
const defaultClass = "default"

// checkClassUse says where p names a route class that s does not have.
func (s *Set) checkClassUse(p *Policy) error {
	if c := p.Match.Get("route_class"); c != "" {
		x := Condition{"route_class", c}.parts()
		if !slices.ContainsFunc(s.RouteClasses, func(r RouteClass) bool { return x.holds(r.Name) }) {
			return invalid("match.route_class", "%q, want %s", c, s.classNames())
		}
	}
	if i := slices.Index(p.Scope, "route_class"); i >= 0 && len(s.RouteClasses) == 0 {
		return invalid(fmt.Sprintf("scope[%d]", i), "route_class, want route_classes to be given: no request has one")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Cost.Classes)) {
		if !slices.ContainsFunc(s.RouteClasses, func(r RouteClass) bool { return r.Name == name }) {
			return invalid("cost."+name, "%q, want %s or %s", name, s.classNames(), defaultClass)
		}
	}
	return nil
}

// classNames lists the route classes of s for a message.
func (s *Set) classNames() string {
	if len(s.RouteClasses) == 0 {
		return "route_classes to name it"
	}
	var names []string
	for _, c := range s.RouteClasses[:min(len(s.RouteClasses), 10)] {
		names = append(names, c.Name)
	}
	return "a route class: " + either(names)
}
