# A reader of portable model files (docs/portable.md), in base R. `model` is the description: lists, and vectors of
# numbers in which NA stands for null. Positions in it count from 0.

farthest <- 1e140 # in standard units: greater distances count as this one

clip <- function(value, least, most) pmin(pmax(value, least), most)

log_sum <- function(terms) {
  highest <- max(terms)
  if (highest == -Inf) -Inf else highest + log(sum(exp(terms - highest)))
}

# By column of a matrix: ln of the sum of the exponentials.
log_sums <- function(terms) apply(terms, 2, log_sum)

normalised <- function(logs) logs - log_sum(logs)

factorised <- function(scale) {
  multiple <- .Machine$double.eps
  jitter <- 0
  repeat {
    found <- tryCatch(t(chol(scale + jitter * diag(diag(scale), nrow(scale)))), error = function(e) NULL)
    if (!is.null(found)) return(found)
    multiple <- 8 * multiple
    jitter <- multiple
  }
}

# Residual and spread of the last member given the others, and the squared distance of these from their centre.
conditional <- function(factor, residual) {
  white <- forwardsolve(factor, residual)
  last <- length(white)
  own <- factor[last, last]
  c(white[last] * own, own^2, sum(white[-last]^2))
}

canonical <- function(level) {
  text <- if (is.numeric(level)) format(level, digits = 15, scientific = FALSE, trim = TRUE) else as.character(level)
  text[text %in% c("true", "True", "TRUE")] <- "1"
  text[text %in% c("false", "False", "FALSE")] <- "0"
  whole <- grepl("^-?(0|[1-9][0-9]{0,99})(\\.0*)?$", text)
  text[whole] <- sub("\\..*$", "", text[whole])
  text[text == "-0"] <- "0"
  text
}

n_levels <- function(columns) vapply(columns, function(column) max(1, length(column$levels)), 1)

# The number of a combination of levels, the last of which varies fastest, counted from 1.
configuration <- function(parents, codes, sizes) {
  number <- 0
  for (v in parents + 1) number <- number * sizes[v] + codes[v]
  number + 1
}

numbers <- function(value) as.numeric(unlist(value)) # of a list that may be empty

# Combinations of levels of columns (counted from 1): a row each, the last column varies fastest.
combinations <- function(scope, sizes) {
  if (!length(scope)) return(matrix(0, 1, 0))
  found <- as.matrix(expand.grid(lapply(rev(scope), function(v) seq_len(sizes[v]) - 1)))
  found[, rev(seq_len(ncol(found))), drop = FALSE]
}

# ---- continuous features with the same discrete parents, under a sharing

group_of <- function(group, sharing, averages) {
  columns <- numbers(group$columns) + 1
  n <- length(columns)
  separate <- is.list(group$shape[[1]])
  shared <- function(by_class, prior) {
    total <- Reduce(`+`, lapply(by_class, function(own) own - prior))
    lapply(by_class, function(own) own + sharing * (total - (own - prior)))
  }
  of_cells <- function(part) if (separate) part else lapply(part, function(cell) as.list(cell))
  prior_scale <- if (averages) c(group$prior_scale, rep(0, length(group$scale[[1]][[1]]) - n)) else 0
  scale <- lapply(group$scale, shared, prior = prior_scale)
  shape <- lapply(of_cells(group$shape), shared, prior = if (averages) group$prior_shape else 0)
  leverage <- of_cells(group$leverage)
  own_spread <- if (!is.null(group$own_spread)) lapply(group$own_spread, shared, prior = 0)
  keys <- if (!is.null(group$pairs)) numbers(group$pairs[[1]]) * n + numbers(group$pairs[[2]])
  factors <- new.env()
  at_own <- function(part, cell, label, own) part[[cell]][[label]][if (separate) own + 1 else 1]

  place <- function(i, j) {
    first <- pmin(i, j)
    second <- pmax(i, j)
    found <- if (!is.null(keys)) {
      n + match(first * n + second, keys)
    } else {
      short <- pmax(0, first - (n - 1 - group$reach))
      n + first * group$reach - short * (short - 1) / 2 + second - first
    }
    ifelse(first == second, first + 1, found)
  }

  factor <- function(cell, label, members) {
    key <- paste(c(cell, label, members), collapse = ",")
    if (is.null(factors[[key]])) {
      entries <- scale[[cell]][[label]][outer(members, members, place)]
      factors[[key]] <- factorised(matrix(entries, length(members)))
    }
    factors[[key]]
  }

  standard <- function(x, members) {
    clip((x[columns[members + 1]] - group$origin[members + 1]) / group$unit[members + 1], -farthest, farthest)
  }

  # Log density of a residual; spread and squared distance are per unit of `behind`.
  log_density <- function(cell, label, own, parts, n_given, behind) {
    unit <- group$unit[own + 1]
    residual <- parts[1] + if (is.null(group$shift)) 0 else group$shift[[cell]][[label]][own + 1]
    spread <- parts[2] * behind + if (is.null(own_spread)) 0 else own_spread[[cell]][[label]][own + 1]
    if (!averages) return(-0.5 * (log(2 * pi * spread) + residual^2 / spread) - log(unit))
    rho <- at_own(shape, cell, label, own) + n_given / 2
    spread <- spread * (at_own(leverage, cell, label, own) + parts[3] / behind)
    lgamma(rho + 0.5) - lgamma(rho) - 0.5 * log(pi * spread) - (rho + 0.5) * log1p(residual^2 / spread) - log(unit)
  }

  # ln p(own | given) in each class
  density <- function(cell, own, given, x) {
    members <- c(given, own)
    away <- standard(x, members)
    vapply(seq_along(group$centre[[cell]]), function(label) {
      residual <- away - group$centre[[cell]][[label]][members + 1]
      log_density(cell, label, own, conditional(factor(cell, label, members), residual), length(given), 1)
    }, 1)
  }

  list(
    group = group, columns = columns, factor = factor, standard = standard, log_density = log_density,
    density = density, behind = function(cell, label, own) if (averages) 2 * at_own(shape, cell, label, own) else 1
  )
}

# ---- one setting of a network

network_of <- function(net, setting, sizes, n_classes) {
  averages <- net$estimation == "bayes"
  groups <- lapply(net$groups, group_of, sharing = setting$sharing, averages = averages)
  nodes <- lapply(net$continuous, function(node) {
    of <- groups[[node$group + 1]]
    given <- numbers(node$given)
    list(
      column = node$column + 1, of = of, own = node$own, given = given, parents = of$columns[given + 1],
      cells = numbers(of$group$parents)
    )
  })
  discrete <- lapply(net$discrete, function(family) {
    list(column = family$column + 1, parents = numbers(family$parents), counts = family$counts)
  })
  node_columns <- vapply(nodes, function(node) node$column, 1)
  known <- new.env()

  categorical <- function(family, codes) {
    cell <- configuration(family$parents, codes, sizes)
    vapply(family$counts, function(by_cell) {
      mass <- by_cell[[cell]] + setting$dirichlet
      log(mass[codes[family$column] + 1]) - log(sum(mass))
    }, 1)
  }

  direct <- function(node, codes, x) node$of$density(configuration(node$cells, codes, sizes), node$own, node$given, x)

  # Log density of each family whose columns are observed.
  families <- function(x) {
    found <- lapply(discrete, function(family) {
      if (anyNA(x[c(family$column, family$parents + 1)])) return(NULL)
      list(column = family$column, parents = family$parents + 1, log_density = categorical(family, x))
    })
    of_nodes <- lapply(nodes, function(node) {
      parents <- c(node$cells + 1, node$parents)
      if (anyNA(x[c(node$column, parents)])) return(NULL)
      list(column = node$column, parents = parents, log_density = direct(node, x, x))
    })
    Filter(Negate(is.null), c(found, of_nodes))
  }

  # Connected continuous features, as positions among the nodes, parents before children.
  clusters <- function(needed) {
    found <- list()
    for (i in seq_along(nodes)) {
      if (!(node_columns[i] %in% needed)) next
      near <- vapply(found, function(cluster) any(node_columns[cluster] %in% nodes[[i]]$parents), NA)
      found <- c(found[!near], list(sort(c(unlist(found[near]), i))))
    }
    found
  }

  # Mean and scale of all features of a cluster, each in its own units, from the regressions on their parents.
  implied <- function(cluster, codes, label) {
    cells <- unlist(lapply(nodes[cluster], function(node) codes[node$cells + 1]))
    key <- paste(c(label, cluster, "given", cells), collapse = ",")
    if (is.null(known[[key]])) known[[key]] <- implied_anew(cluster, codes, label)
    known[[key]]
  }

  implied_anew <- function(cluster, codes, label) {
    n <- length(cluster)
    mean <- numeric(n)
    joint <- matrix(0, n, n)
    for (i in seq_len(n)) {
      node <- nodes[[cluster[i]]]
      group <- node$of$group
      cell <- configuration(node$cells, codes, sizes)
      factor <- node$of$factor(cell, label, c(node$given, node$own))
      last <- nrow(factor)
      centre <- group$centre[[cell]][[label]]
      mean[i] <- centre[node$own + 1]
      joint[i, i] <- factor[last, last]^2 / node$of$behind(cell, label, node$own)
      if (last == 1) next
      before <- match(node$parents, node_columns[cluster])
      slopes <- backsolve(t(factor[-last, -last, drop = FALSE]), factor[last, -last])
      theirs <- vapply(cluster[before], function(k) {
        c(nodes[[k]]$of$group$origin[nodes[[k]]$own + 1], nodes[[k]]$of$group$unit[nodes[[k]]$own + 1])
      }, c(0, 0))
      unit <- group$unit[node$given + 1] # units of a column may differ between families
      value <- centre[node$given + 1] * unit + group$origin[node$given + 1]
      slopes <- slopes * theirs[2, ] / unit
      mean[i] <- mean[i] + sum(slopes * (mean[before] - (value - theirs[1, ]) / theirs[2, ]))
      earlier <- seq_len(i - 1)
      joint[i, earlier] <- joint[earlier, i] <- slopes %*% joint[before, earlier, drop = FALSE]
      joint[i, i] <- joint[i, i] + sum(slopes * joint[i, before])
    }
    list(mean = mean, scale = joint)
  }

  # Log densities of the observed features of a cluster, given a level of every discrete parent.
  integrated <- function(cluster, codes, x) {
    own <- node_columns[cluster]
    seen <- !is.na(x[own])
    whole <- seen & vapply(nodes[cluster], function(node) !anyNA(x[node$parents]), NA)
    total <- numeric(n_classes)
    for (node in nodes[cluster[whole]]) total <- total + direct(node, codes, x)
    if (all(whole == seen)) return(total)
    given <- lapply(nodes[cluster], function(node) match(node$parents, own))
    for (i in rev(which(!seen))) { # arcs are reversed until it has no children
      gained <- given[[i]]
      for (child in which(seen)) {
        if (!(i %in% given[[child]])) next
        mine <- setdiff(given[[child]], i)
        given[[child]] <- union(mine, gained)
        gained <- union(gained, c(mine, child))
      }
    }
    away <- vapply(nodes[cluster], function(node) node$of$standard(x, node$own), 1)
    for (label in seq_len(n_classes)) {
      joint <- implied(cluster, codes, label)
      for (i in which(seen & !whole)) {
        node <- nodes[[cluster[i]]]
        members <- c(sort(given[[i]]), i)
        factor <- factorised(joint$scale[members, members, drop = FALSE])
        parts <- conditional(factor, away[members] - joint$mean[members])
        cell <- configuration(node$cells, codes, sizes)
        behind <- node$of$behind(cell, label, node$own)
        total[label] <- total[label] + node$of$log_density(cell, label, node$own, parts, length(given[[i]]), behind)
      }
    }
    total
  }

  # Levels of missing discrete features are summed over, one feature after the other.
  log_likelihood <- function(x) {
    every <- c(
      lapply(discrete, function(family) list(column = family$column, parents = family$parents + 1)),
      lapply(nodes, function(node) list(column = node$column, parents = c(node$cells + 1, node$parents)))
    )
    needed <- Filter(function(v) !is.na(x[v]), vapply(every, function(family) family$column, 1))
    for (family in rev(every)) if (family$column %in% needed) needed <- union(needed, family$parents)
    tabulated <- function(columns, value) {
      scope <- Filter(function(v) is.na(x[v]), unique(columns))
      found <- apply(combinations(scope, sizes), 1, function(at) {
        codes <- x
        codes[scope] <- at
        value(codes)
      })
      list(scope = scope, table = matrix(found, n_classes)) # (classes, combinations)
    }
    tables <- list()
    for (family in discrete) {
      if (!(family$column %in% needed)) next
      tables[[length(tables) + 1]] <-
        tabulated(c(family$column, family$parents + 1), function(codes) categorical(family, codes))
    }
    for (cluster in clusters(needed)) {
      cells <- unlist(lapply(nodes[cluster], function(node) node$cells + 1))
      tables[[length(tables) + 1]] <- tabulated(cells, function(codes) integrated(cluster, codes, x))
    }
    summed <- vapply(discrete, function(family) family$column, 1)
    for (v in rev(summed[summed %in% needed & is.na(x[summed])])) {
      joined <- vapply(tables, function(each) v %in% each$scope, NA)
      scope <- setdiff(unique(unlist(lapply(tables[joined], function(each) each$scope))), v)
      found <- apply(combinations(scope, sizes), 1, function(at) {
        codes <- x
        codes[scope] <- at
        terms <- vapply(seq_len(sizes[v]) - 1, function(level) {
          codes[v] <- level
          total <- numeric(n_classes)
          for (each in tables[joined]) total <- total + each$table[, configuration(each$scope - 1, codes, sizes)]
          total
        }, numeric(n_classes))
        log_sums(t(matrix(terms, n_classes)))
      })
      tables <- c(tables[!joined], list(list(scope = scope, table = matrix(found, n_classes))))
    }
    total <- numeric(n_classes)
    for (each in tables) total <- total + each$table[, 1]
    total
  }

  list(families = families, log_likelihood = log_likelihood)
}

# ---- models: each a function from a sample to log likelihoods (settings, classes)

by_setting <- function(count, of_setting, n_classes) {
  matrix(unlist(lapply(seq_len(count), of_setting)), count, n_classes, byrow = TRUE)
}

minus_infinity <- function(logs) ifelse(is.na(logs), -Inf, logs)

kinds <- list(
  network = function(model, columns, n_classes) {
    settings <- lapply(model$settings, function(each) network_of(model, each, n_levels(columns), n_classes))
    function(x) by_setting(length(settings), function(i) settings[[i]]$log_likelihood(x), n_classes)
  },
  selection = function(model, columns, n_classes) {
    of_kind <- function(kind, n) {
      lapply(model[[kind]]$settings, function(each) network_of(model[[kind]], each, n_levels(columns), n))
    }
    own <- of_kind("own", n_classes)
    free <- of_kind("free", 1)
    function(x) {
      by_setting(length(own), function(i) {
        total <- numeric(n_classes)
        of_free <- free[[i]]$families(x)
        of_own <- own[[i]]$families(x)
        for (k in seq_along(of_own)) {
          v <- of_own[[k]]$column
          inside <- minus_infinity(model$log_in[[i]][v]) + of_own[[k]]$log_density
          outside <- minus_infinity(model$log_out[[i]][v]) + of_free[[k]]$log_density
          total <- total + log_sums(rbind(inside, rep(outside, n_classes)))
        }
        total
      }, n_classes)
    }
  },
  forests = function(model, columns, n_classes) {
    setting <- model$given$settings[[1]]
    given <- network_of(model$given, setting, n_levels(columns), n_classes)
    alone <- network_of(model$alone, setting, n_levels(columns), n_classes)
    nodes <- numbers(model$nodes) + 1
    weights <- do.call(rbind, lapply(model$log_weights, minus_infinity))
    log_total <- function(logs) {
      total <- 0
      for (v in rev(seq_along(nodes))) {
        into <- log_sum(logs[seq_len(v), v])
        for (a in seq_len(v - 1)) {
          for (u in setdiff(seq_len(v), a + 1)) {
            logs[u, a] <- log_sum(c(logs[u, a], logs[u, v] + logs[v + 1, a] - into))
          }
        }
        total <- total + into
      }
      total
    }
    base <- log_total(weights)
    function(x) {
      own <- alone$families(x)
      of_column <- list()
      total <- numeric(n_classes)
      for (each in own) {
        of_column[[as.character(each$column)]] <- each$log_density
        total <- total + each$log_density
      }
      families <- Filter(function(each) all(c(each$column, each$parents) %in% nodes), given$families(x))
      for (label in seq_len(n_classes)) {
        logs <- weights
        for (each in families) {
          u <- match(each$parents, nodes)
          v <- match(each$column, nodes)
          ratio <- each$log_density[label] - of_column[[as.character(each$column)]][label]
          logs[1 + u, v] <- logs[1 + u, v] + ratio
          if (columns[[each$parents]]$kind == "continuous") logs[1 + v, u] <- logs[1 + v, u] + ratio
        }
        total[label] <- total[label] + log_total(logs) - base
      }
      matrix(total, 1)
    }
  },
  orders = function(model, columns, n_classes) {
    absent <- numbers(model$absent)
    of_kinds <- list(group_of(model$free, 0, TRUE), group_of(model$own, 1, TRUE), group_of(model$own, 0, TRUE))
    features <- setdiff(seq_along(numbers(model$own$columns)) - 1, absent)
    function(x) {
      total <- numeric(n_classes)
      for (v in features) {
        terms <- NULL
        for (i in seq_along(of_kinds)) {
          weights <- model$log_weight[[i]][[v + 1]]
          for (order in which(!is.na(weights)) - 1) {
            given <- setdiff(v - rev(seq_len(order)), absent)
            terms <- rbind(terms, rep_len(weights[order + 1] + of_kinds[[i]]$density(1, v, given, x), n_classes))
          }
        }
        total <- total + log_sums(terms)
      }
      matrix(total, 1)
    }
  },
  rotation = function(model, columns, n_classes) {
    basis <- do.call(rbind, model$basis)
    n <- nrow(basis)
    dimensions <- ncol(basis)
    settings <- lapply(model$settings, function(setting) {
      setting$factors <- lapply(setting$scale, function(cell) {
        lapply(cell, function(packed) {
          scale <- diag(packed[seq_len(dimensions)], dimensions)
          scale[lower.tri(scale)] <- packed[-seq_len(dimensions)] # by column, as the pairs are listed
          factorised(scale + t(scale * lower.tri(scale)))
        })
      })
      setting
    })
    function(x) {
      away <- clip((x[numbers(model$columns) + 1] - model$origin) / model$unit, -farthest, farthest)
      inside <- drop(crossprod(basis, away))
      outside <- sum((away - drop(basis %*% inside))^2)
      cell <- configuration(numbers(model$parents), x, n_levels(columns))
      by_setting(length(settings), function(i) {
        setting <- settings[[i]]
        vapply(seq_len(n_classes), function(label) {
          factor <- setting$factors[[cell]][[label]]
          white <- forwardsolve(factor, inside - setting$origin - setting$centre[[cell]][[label]])
          rho <- setting$shape[[cell]][label]
          least <- setting$leverage[[cell]][label]
          whole <- least + outside / setting$multiple + sum(white^2)
          half <- sum(log(diag(factor))) + (n - dimensions) / 2 * log(setting$multiple) + sum(log(model$unit))
          lgamma(rho + n / 2) - lgamma(rho) - n / 2 * log(pi) - half + rho * log(least) - (rho + n / 2) * log(whole)
        }, 1)
      }, n_classes)
    }
  },
  regression = function(model, columns, n_classes) {
    slopes <- matrix(numbers(model$slopes), ncol = n_classes, byrow = TRUE)
    terms <- lapply(model$terms, function(term) numbers(term) + 1)
    function(x) {
      factors <- vapply(model$factors, function(factor) {
        value <- x[factor[[1]] + 1]
        switch(factor[[2]],
          level = as.numeric(value == factor[[3]]),
          step = as.numeric(value >= factor[[3]]),
          value = {
            away <- clip((value - factor[[3]]) / factor[[4]], -farthest, farthest)
            clip(away, if (is.na(factor[[5]])) -Inf else factor[[5]], if (is.na(factor[[6]])) Inf else factor[[6]])
          }
        )
      }, 1)
      centred <- vapply(terms, function(term) prod(factors[term]), 1) - numbers(model$centre)
      centred[is.na(centred)] <- 0
      matrix(numbers(model$intercept) + drop(centred %*% slopes), 1)
    }
  },
  aode = function(model, columns, n_classes) {
    sizes <- numbers(model$levels)
    ends <- cumsum(sizes)
    n <- sum(sizes)
    counts <- lapply(model$counts, function(packed) {
      found <- matrix(0, n, n)
      found[lower.tri(found, diag = TRUE)] <- packed # by column, as the pairs are listed
      found + t(found) - diag(diag(found), n)
    })
    function(x) {
      seen <- which(!is.na(x))
      at <- ends[seen] - sizes[seen] + x[seen] + 1
      levels <- lapply(seen, function(v) seq(ends[v] - sizes[v] + 1, ends[v]))
      by_setting(length(model$settings), function(i) {
        setting <- model$settings[[i]]
        vapply(counts, function(own) {
          if (!length(seen)) return(0)
          observed <- vapply(levels, function(of) sum(diag(own)[of]), 1)
          alone <- (diag(own)[at] + setting$dirichlet) / (observed + setting$dirichlet * sizes[seen])
          terms <- vapply(seq_along(at), function(j) {
            together <- vapply(levels, function(of) sum(own[at[j], of]), 1)
            given <- log((own[at[j], at] + setting$backoff * alone) / (together + setting$backoff))
            log(alone[j]) + sum(given[-j])
          }, 1)
          log_sum(terms) - log(length(terms))
        }, 1)
      }, n_classes)
    }
  },
  indicators = function(model, columns, n_classes) {
    function(x) {
      total <- numeric(n_classes)
      for (i in seq_along(model$columns)) {
        state <- if (is.na(x[numbers(model$columns)[i] + 1])) 2 else 1
        total <- total + vapply(model$counts[[i]], function(counts) {
          mass <- counts + model$dirichlet
          log(mass[state]) - log(sum(mass))
        }, 1)
      }
      matrix(total, 1)
    }
  }
)

# ---- the whole

reader_of <- function(model) {
  columns <- model$columns
  n_classes <- length(model$classes)
  is_continuous <- vapply(columns, function(column) column$kind == "continuous", NA)
  models <- lapply(model$models, function(each) kinds[[each$kind]](each, columns, n_classes))
  needs_complete <- vapply(model$models, function(each) isTRUE(each$needs_complete), NA)
  transform_of <- vapply(model$models, function(each) each$transform, "")

  # Numbers (samples, columns): values, or positions of levels; NA where they are missing or unknown.
  read <- function(newdata) {
    names <- vapply(columns, function(column) column$name, "")
    if (is.matrix(newdata) || !all(names %in% colnames(newdata))) {
      if (ncol(newdata) != length(names)) stop("newdata must have the columns ", paste(names, collapse = ", "))
      at <- seq_along(names)
    } else {
      at <- match(names, colnames(newdata))
    }
    cells <- lapply(seq_along(columns), function(v) {
      cell <- if (is.data.frame(newdata)) newdata[[at[v]]] else newdata[, at[v]]
      if (isTRUE(columns[[v]]$fixed)) return(rep(0, length(cell)))
      if (is_continuous[v]) {
        if (is.factor(cell) || is.character(cell) && !all(is.na(cell))) stop(names[v], " must hold numbers")
        value <- as.numeric(cell)
        if (any(is.infinite(value))) stop(names[v], " holds infinity")
        return(value)
      }
      text <- canonical(if (is.factor(cell)) as.character(cell) else cell)
      code <- match(text, canonical(unlist(columns[[v]]$levels))) - 1
      unknown <- is.na(code) & !is.na(cell)
      if (any(unknown) && model$handle_unknown == "error") stop(names[v], " has the unknown level ", text[unknown][1])
      code
    })
    do.call(cbind, cells)
  }

  transformed <- function(x, name) {
    transform <- model$transforms[[name]]
    values <- x[is_continuous]
    if (!is.null(transform$edges)) {
      bin <- function(value, edges) if (is.na(value)) NA else sum(numbers(edges) <= value)
      x[is_continuous] <- numbers(mapply(bin, values, transform$edges))
    } else if (!is.null(transform$power)) {
      away <- clip((values - transform$origin) / transform$unit, -farthest, farthest)
      length <- log1p(abs(away))
      exponent <- ifelse(away >= 0, transform$power, 2 - transform$power)
      flat <- abs(exponent) < 1e-8
      value <- ifelse(flat, length, expm1(pmin(exponent * length, 300)) / ifelse(flat, 1, exponent))
      x[is_continuous] <- ifelse(away >= 0, value, -value)
    }
    x
  }

  function(newdata, log_prior) {
    t(apply(read(newdata), 1, function(x) {
      able <- Filter(function(member) {
        used <- unlist(lapply(member$likelihoods, function(each) numbers(each$models) + 1))
        !anyNA(x) || !any(needs_complete[used])
      }, model$members)
      if (!length(able)) stop("this model needs a value for every feature")
      versions <- lapply(unique(transform_of), transformed, x = x)
      names(versions) <- unique(transform_of)
      found <- list()
      likelihood <- function(i) {
        key <- as.character(i)
        if (is.null(found[[key]])) found[[key]] <<- models[[i]](versions[[transform_of[i]]])
        found[[key]]
      }
      terms <- vapply(able, function(member) {
        joint <- log_prior
        for (each in member$likelihoods) {
          powers <- numbers(each$powers)
          for (i in numbers(each$models) + 1) {
            logs <- likelihood(i)
            if (nrow(logs) == 1) logs <- logs[rep(1, length(powers)), , drop = FALSE]
            joint <- joint + drop(powers %*% logs)
          }
        }
        normalised(joint) + log(member$weight)
      }, numeric(n_classes))
      mixed <- normalised(log_sums(t(terms)))
      normalised(model$power * mixed + (1 - model$power) * log_prior)
    }))
  }
}
