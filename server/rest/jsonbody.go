package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// ReadJSON reads the body of a streamed operation: an object with the schema of T, of at most limitBytes. An empty body
// means {}. The warnings name the fields that T lacks.
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
	decoded := new(T)
	if err := json.Unmarshal(body, decoded); err != nil {
		return nil, nil, newProblem(codeInvalid, violation(&huma.ErrorDetail{Location: "body", Message: err.Error()}))
	}
	return decoded, warnings, nil
}

// Hold reads a body into memory. Its bytes count in the API's BodyBudget until release is called. A *Problem if the
// body is too large, or if there is no room for it.
func (a *API) Hold(c echo.Context, limitBytes int64) (body []byte, release func(), err error) {
	body, release, err = a.HoldAny(c, limitBytes)
	if err != nil {
		return nil, release, err
	}
	if problem := checkShape("body", body, maxBodyDepth, maxBodyValues); problem != nil {
		return nil, release, problem
	}
	return body, release, nil
}

// HoldAny is Hold for a body that is passed on: it may have any depth and any number of values.
func (a *API) HoldAny(c echo.Context, limitBytes int64) (body []byte, release func(), err error) {
	held := &heldBody{Reader: Body(c, limitBytes), in: a.bodies, org: Org(c.Request().Context())}
	if body, err = io.ReadAll(held); err != nil {
		return nil, held.release, bodyError(err)
	}
	return body, held.release, nil
}

// validate returns a *Problem that names all violations of a schema.
func validate(schemas Registry, schema *Schema, value any) error {
	var result huma.ValidateResult
	huma.Validate(schemas, schema, huma.NewPathBuffer([]byte("body"), len("body")), huma.ModeWriteToServer, value, &result)
	if len(result.Errors) == 0 {
		return nil
	}
	return newProblem(codeInvalid, violations(explain(schemas, "body", schema, result.Errors)))
}

// takesBody reports whether the fields in the body of a request with this method mean something.
func takesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
