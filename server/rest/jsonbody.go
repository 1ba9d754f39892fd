package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// ReadJSON reads the body of a streamed operation, of at most limitBytes: an object that has the schema of T. An empty
// body is {}. The warnings name the fields that T lacks.
func ReadJSON[T any](a *API, c echo.Context, limitBytes int64) (*T, Warnings, error) {
	body, release, err := a.Hold(c, limitBytes)
	defer release()
	if err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	var warnings Warnings
	schemas, schema := a.OpenAPI().Components.Schemas, SchemaOf[T](a)
	body, refused := checkNames(schemas, schema, "", body, &warnings)
	if refused != nil {
		return nil, nil, refused
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return nil, nil, bodyError(err)
	}
	if err := validate(schemas, schema, value); err != nil {
		return nil, nil, err
	}
	into := new(T)
	if err := json.Unmarshal(body, into); err != nil {
		return nil, nil, newProblem(codeInvalid, violation(&huma.ErrorDetail{Location: "body", Message: err.Error()}))
	}
	return into, warnings, nil
}

// Hold reads a body into memory, whose bytes count among those of all bodies until release is called. A *Problem if the
// body is too large or there is no room for it.
func (a *API) Hold(c echo.Context, limitBytes int64) (body []byte, release func(), err error) {
	held := &heldBody{Reader: Body(c, limitBytes), in: a.bodies, org: Org(c.Request().Context())}
	if body, err = io.ReadAll(held); err != nil {
		return nil, held.release, bodyError(err)
	}
	if broken := checkShape("body", body, maxBodyDepth, maxBodyValues); broken != nil {
		return nil, held.release, broken
	}
	return body, held.release, nil
}

// validate returns a *Problem with all violations of a schema.
func validate(schemas Registry, schema *Schema, value any) error {
	var broken huma.ValidateResult
	huma.Validate(schemas, schema, huma.NewPathBuffer([]byte("body"), len("body")), huma.ModeWriteToServer, value, &broken)
	if len(broken.Errors) == 0 {
		return nil
	}
	return newProblem(codeInvalid, violations(explain(schemas, "body", schema, broken.Errors)))
}

// takesBody reports whether a request with a method may have a body whose fields mean something.
func takesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
