#include "serve/model.h"

namespace slipway::serve {

const char* method_name(Method method) {
  switch (method) {
    case Method::classify: return "tensorflow/serving/classify";
    case Method::regress: return "tensorflow/serving/regress";
    case Method::predict: break;
  }
  return "tensorflow/serving/predict";
}

}  // namespace slipway::serve
